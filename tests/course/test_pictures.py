"""Each problem's explore.py shows the student's functions. Its pictures exist and are small."""

import ast
import functools
import itertools
import re
import runpy
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch

from grader.course import Course, own_course
from shared import pictures, saved_models, training_text
from shared.oracles import torch_gpt

ROOT = own_course().root
PROBLEMS = sorted(path.parent.name for path in (ROOT / "problems").glob("*/explore.py"))
STUB_OF_07 = ROOT / "problems/07-tiny-gpt/problem.py"
FIRST_AND_SLOW_OTHERS = [
    PROBLEMS[0],
    *(pytest.param(name, marks=pytest.mark.slow) for name in PROBLEMS[1:]),
]
SHORT_TRAINING = {"07-tiny-gpt": ("--steps", "2"), "10-training-step": ("2",)}
"""Arguments with which training takes seconds instead of a minute."""
LARGEST = 60_000  # bytes
COARSE = {"savefig.dpi": 30, "figure.constrained_layout.use": False}
"""Settings for coarse pictures, as drawing takes most of a test's time."""


@pytest.fixture(scope="module")
def library():
    """Return a function that reads the default training text only once."""
    return functools.cache(training_text._library)


@pytest.fixture
def explore(tmp_path, monkeypatch, capsys, library):
    """Return a function that runs a problem's explore.py next to a file of a student.

    The function returns the folder of the problem and the output.
    """
    monkeypatch.setattr(pictures, "own_course", lambda: Course(tmp_path))
    monkeypatch.setattr(training_text, "_library", library)
    for name, coarse in COARSE.items():
        monkeypatch.setitem(pictures.STYLE, name, coarse)
    mpl.use("agg")

    def run(problem_id, problem_file, *arguments):
        folder = tmp_path / "problems" / problem_id
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "problems" / problem_id / "explore.py", folder)
        shutil.copy(problem_file, folder)
        script = str(folder / "explore.py")
        in_short = SHORT_TRAINING.get(problem_id, ())
        monkeypatch.setattr(sys, "argv", [script, *arguments, *in_short])
        with mpl.rc_context():
            runpy.run_path(script, run_name="__main__")
        return folder, capsys.readouterr().out

    return run


def remarks(words):
    """Return the different remarks about the student's functions."""
    return set(re.findall(r"^[\w ]+: (yours.*)$", words, re.MULTILINE))


def test_every_problem_is_tested():
    assert [problem.id for problem in own_course().problems()] == PROBLEMS


@pytest.mark.parametrize("problem_id", FIRST_AND_SLOW_OTHERS)
def test_with_a_stub_explore_shows_the_expected_picture(explore, problem_id):
    folder, words = explore(problem_id, ROOT / "problems" / problem_id / "problem.py")
    assert remarks(words) == {"yours is not written yet. The picture shows the expected table."}
    drawn = [str(folder / f"pictures/my_{path.name}") for path in pictures_of(problem_id)]
    assert sorted(re.findall(r"^Wrote (.*)$", words, re.MULTILINE)) == sorted(drawn)


def test_a_misspelled_method_does_not_count_as_unwritten(explore, tmp_path):
    right = (ROOT / "solutions/02-basic-attention/problem.py").read_text("utf-8")
    path = tmp_path / "problem.py"
    path.write_text(right.replace("def forward", "def foward"), encoding="utf-8")
    _, words = explore("02-basic-attention", path)
    assert "raises NotImplementedError: Module [SimpleAttention] is missing" in words


@pytest.mark.slow
@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_help_prints_the_docstring_without_loading_torch(problem_id):
    script = ROOT / "problems" / problem_id / "explore.py"
    code = "import runpy, sys; sys.modules['torch'] = None; sys.argv = sys.argv[1:];"
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, str(script), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    said = ast.get_docstring(ast.parse(script.read_text("utf-8")))
    assert done.stdout.strip() == said
    assert not done.stderr


@pytest.fixture
def no_pictures(monkeypatch):
    """Replace the function that writes pictures, as it is slow."""
    monkeypatch.setattr(pictures, "save", lambda figure, name, **options: None)


@pytest.fixture
def stopped_after(monkeypatch):
    """Return a function that makes training raise KeyboardInterrupt after `steps` steps."""

    def stop(steps):
        step, done = torch_gpt.train_step, itertools.count()

        def step_or_stop(*arguments):
            if next(done) == steps:
                raise KeyboardInterrupt
            return step(*arguments)

        monkeypatch.setattr(torch_gpt, "train_step", step_or_stop)

    return stop


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_stopped_training_saves_the_model(explore, stopped_after):
    stopped_after(1)
    folder, words = explore("07-tiny-gpt", STUB_OF_07)
    assert "Stopped." in words
    assert "after 1 step and" in words
    assert "The model is saved in model.pt." in words
    assert saved_models.read() is not None
    assert not list(folder.glob(".model*"))


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_without_a_mask_longer_training_is_suggested(explore):
    _, words = explore("07-tiny-gpt", STUB_OF_07, "--no-mask")
    assert "train longer" in words
    assert "The loss goes to 0" not in words
    assert saved_models.read() is None


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("solved", [True, False])
def test_a_resumed_training_keeps_the_better_model(explore, solved):
    file = ROOT / "solutions/07-tiny-gpt/problem.py" if solved else STUB_OF_07
    explore("07-tiny-gpt", file, "--seed", "3")
    first = saved_models.read()
    _, words = explore("07-tiny-gpt", file, "--seed", "4", "--resume")
    assert "The model is saved in model.pt." in words
    assert saved_models.read().loss <= first.loss


@pytest.mark.slow
def test_training_stopped_at_once_saves_nothing(explore, stopped_after):
    stopped_after(0)
    with pytest.raises(SystemExit, match="nothing is kept"):
        explore("07-tiny-gpt", STUB_OF_07)
    assert saved_models.read() is None


def test_a_text_that_is_too_short_is_refused(explore, tmp_path):
    poem = tmp_path / "poem.txt"
    poem.write_text("short", encoding="utf-8")
    with pytest.raises(SystemExit, match="5 characters, but at least 650 are needed"):
        explore("07-tiny-gpt", STUB_OF_07, "--text", str(poem))


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_students_parts_train_on_the_students_text(explore, tmp_path):
    poem = tmp_path / "poem.txt"
    poem.write_text("Мороз и солнце; день чудесный!\n" * 40, encoding="utf-8")
    solution = ROOT / "solutions" / "07-tiny-gpt" / "problem.py"
    _, words = explore("07-tiny-gpt", solution, "--mine", "--seed", "3", "--text", str(poem))
    assert "model yours, 07" in words
    assert "attention the course's" in words
    assert "times the course's" in words
    assert "The last 124 are held out." in words
    assert "The model is saved in model-poem.pt." in words
    kept = saved_models.read("poem")
    assert kept.is_yours
    assert kept.characters == "".join(sorted(set(poem.read_text("utf-8"))))


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_weights_of_the_best_step_are_kept(explore, monkeypatch):
    losses = iter([2.0, 1.0, 3.0])
    monkeypatch.setattr(torch_gpt, "evaluate", lambda *_: next(losses))
    monkeypatch.setattr(torch_gpt, "train_step", lambda *_: 1.0)  # a real step is slow
    monkeypatch.setitem(SHORT_TRAINING, "07-tiny-gpt", ("--steps", "60"))
    _, words = explore("07-tiny-gpt", STUB_OF_07, "--seed", "3")
    assert "lowest after step 40: 1.000" in words
    assert "That is overfitting. The weights of step 40 are kept." in words
    assert saved_models.read().loss == 1.0


@pytest.mark.parametrize("problem_id", FIRST_AND_SLOW_OTHERS)
def test_with_a_solution_explore_shows_the_students_picture(explore, problem_id):
    folder, words = explore(problem_id, ROOT / "solutions" / problem_id / "problem.py", "--save")
    assert remarks(words) == {"yours, as expected."}
    drawn = sorted(path.name for path in folder.glob("pictures/*"))
    assert drawn == sorted(f"my_{path.name}" for path in pictures_of(problem_id))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("    return x / 2", "yours differs from the expected result in 18 of 18 numbers."),
        ("    return x.sofmax(dim)", "yours raises AttributeError: 'Tensor' object has no"),
        ("    return", "yours raises TypeError: expected Tensor"),
        ("    return x[:2]", "yours returns shape (3, 2) instead of (3, 6)."),
        ("  return )", "yours raises SyntaxError"),
    ],
)
def test_a_wrong_function_is_reported(tmp_path, explore, wrong, said):
    problem_file = tmp_path / "problem.py"
    problem_file.write_text(f"def softmax(x, dim=-1):\n{wrong}\n")
    _, words = explore("01-softmax", problem_file)
    assert f"softmax: {said}" in words


def write_changed(problem_id, tmp_path, right, wrong):
    """Write a solution in which `right` is replaced by `wrong`, and return its path."""
    text = (ROOT / "solutions" / problem_id / "problem.py").read_text("utf-8")
    assert right in text
    path = tmp_path / "problem.py"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    return path


def test_a_wrong_mask_is_drawn_next_to_the_expected_one(tmp_path, explore, monkeypatch):
    drawn = []
    monkeypatch.setattr(pictures, "save", lambda figure, name: drawn.append(figure))
    _, words = explore(
        "04-causal-masking", write_changed("04-causal-masking", tmp_path, ".tril()", ".tril(1)")
    )
    assert "causal_mask: yours differs from the expected result in 5 of 36 numbers." in words
    tables = [axes for axes in drawn[0].axes if axes.images]
    # The wrong mask makes one more weight positive in each row except the last.
    assert "masked_softmax: yours, as expected." in words
    weights = torch.as_tensor(tables[1].images[0].get_array())
    assert torch.equal(weights > 0, torch.ones(6, 6).tril(1) == 1)
    assert [len(axes.patches) for axes in tables] == [5, 20, 0, 0, 0][: len(tables)]
    assert [axes.get_ylabel().partition("\n")[0] for axes in tables[:4:2]] == ["yours", "expected"]


@pytest.mark.slow
@pytest.mark.parametrize("problem_id", [p for p in PROBLEMS if p[:2] in ("02", "04", "05")])
def test_explore_accepts_a_sentence(explore, problem_id):
    _, words = explore(problem_id, ROOT / "solutions" / problem_id / "problem.py", "to be or not")
    assert remarks(words) == {"yours, as expected."}


def test_adding_a_number_to_all_scores_changes_no_weight(explore):
    _, words = explore("01-softmax", ROOT / "solutions/01-softmax/problem.py", "4", "5")
    weights = re.findall(r"softmax\(scores \+ \d+\): (.*)", words)
    assert weights == ["0.2689 0.7311"] * 3


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_a_mistyped_option_is_refused(explore, monkeypatch, capsys, problem_id):
    monkeypatch.setattr(pictures, "save", lambda *_: pytest.fail("it writes a picture"))
    with pytest.raises(SystemExit, match="2"):
        explore(problem_id, ROOT / "solutions" / problem_id / "problem.py", "--sav")
    assert "unrecognized arguments: --sav" in capsys.readouterr().err


def test_a_negative_number_is_not_an_option(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["explore.py", "-1,2", "--save", "-.5", "-inf"])
    assert pictures.numbers([1]).tolist() == [-1, 2, -0.5, -torch.inf]


def test_pictures_of_earlier_runs_are_kept(tmp_path, monkeypatch, capsys):
    mpl.use("agg")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "explore.py")])
    for _ in range(3):
        pictures.save(plt.figure(figsize=(1, 1)), "loss", each=True)
    drawn = sorted(path.name for path in tmp_path.glob("pictures/*"))
    assert drawn == ["my_loss.png", "my_loss_2.png", "my_loss_3.png"]


@pytest.mark.slow
def test_draw_all_writes_the_pictures_of_each_problem(tmp_path):
    folder = tmp_path / "problems" / "01-softmax"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "problems" / "01-softmax" / "explore.py", folder)
    shutil.copytree(ROOT / "problems/shared", tmp_path / "problems/shared")
    pictures.draw_all(tmp_path)
    assert [path.name for path in folder.glob("pictures/*")] == ["softmax_scale.png"]


def pictures_of(problem_id: str) -> list[Path]:
    """Return the pictures that a problem's README and its page `more.md` show."""
    folder = ROOT / "problems" / problem_id
    pages = [page for name in ("README.md", "more.md") if (page := folder / name).is_file()]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    return [folder / name for name in re.findall(r"!\[[^]]+\]\((pictures/[^)]+)\)", text)]


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_the_pictures_of_the_readme_are_small_png_files(problem_id):
    assert pictures_of(problem_id)
    for path in pictures_of(problem_id):
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">I", content[16:20]) == (1200,)  # the width
        assert len(content) < LARGEST


def test_a_sentence_is_wrapped_only_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    sentence = "softmax: yours is not written yet."
    pictures.say(sentence)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    pictures.say(sentence)
    assert capsys.readouterr().out.splitlines() == [
        sentence,
        "softmax: yours is",
        "not written yet.",
    ]
