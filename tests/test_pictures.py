"""Each problem's explore.py runs and uses the right functions; its pictures exist and are small."""

import re
import runpy
import shutil
import struct
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from grader.course import Course, own_course
from grader.student import pictures

ROOT = own_course().root
PROBLEMS = sorted(path.parent.name for path in (ROOT / "problems").glob("*/explore.py"))
FIRST_AND_SLOW_OTHERS = [
    PROBLEMS[0],
    *(pytest.param(name, marks=pytest.mark.slow) for name in PROBLEMS[1:]),
]
LARGEST = 60_000  # bytes


@pytest.fixture
def explore(tmp_path, monkeypatch, capsys):
    """Run a problem's explore.py beside the given problem.py; return its folder and its words."""
    monkeypatch.setattr(pictures, "own_course", lambda: Course(tmp_path))
    mpl.use("agg")

    def run(problem_id, problem_file, *arguments):
        folder = tmp_path / "problems" / problem_id
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "problems" / problem_id / "explore.py", folder)
        shutil.copy(problem_file, folder)
        script = str(folder / "explore.py")
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        with mpl.rc_context():
            runpy.run_path(script, run_name="__main__")
        return folder, capsys.readouterr().out

    return run


def own_or_not(words):
    """Return the lines that say whose function is used."""
    return re.findall(r"^\w+: (yours\.|the course's own, .*)$", words, re.MULTILINE)


def test_every_problem_is_there():
    assert [name[:2] for name in PROBLEMS] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("problem_id", FIRST_AND_SLOW_OTHERS)
def test_on_the_stub_it_uses_the_course_s_own_and_says_so(explore, problem_id):
    _, words = explore(problem_id, ROOT / "problems" / problem_id / "problem.py")
    lines = own_or_not(words)
    assert lines
    assert set(lines) == {"the course's own, as yours is not written yet."}
    assert "run this with --save" in words


@pytest.mark.parametrize("problem_id", FIRST_AND_SLOW_OTHERS)
def test_on_the_solution_it_uses_the_student_s_and_saves(explore, problem_id):
    folder, words = explore(problem_id, ROOT / "solutions" / problem_id / "problem.py", "--save")
    lines = own_or_not(words)
    assert lines
    assert set(lines) == {"yours."}
    drawn = sorted(path.name for path in folder.glob("pictures/*"))
    assert drawn == sorted(path.name for path in pictures_of(problem_id))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("    return x", "yours gives other numbers so far"),
        ("    return x.sofmax(dim)", "yours stops with AttributeError"),
        ("    return", "yours gives other numbers so far"),
        ("  return )", "yours stops with SyntaxError"),
    ],
)
def test_a_wrong_function_is_not_used(tmp_path, explore, wrong, reason):
    problem_file = tmp_path / "problem.py"
    problem_file.write_text(f"def softmax(x, dim=-1):\n{wrong}\n")
    _, words = explore("01-softmax", problem_file)
    assert own_or_not(words) == [f"the course's own, as {reason}."]


def test_the_same_figure_gives_the_same_file(explore):
    stub = ROOT / "problems" / "04-causal-masking" / "problem.py"
    files = []
    for _ in range(2):
        folder, _ = explore("04-causal-masking", stub, "--save")
        files.append((folder / "pictures" / "causal_mask.png").read_bytes())
    assert files[0] == files[1]


@pytest.mark.slow
def test_draw_all_writes_the_pictures_of_each_problem(tmp_path):
    folder = tmp_path / "problems" / "01-softmax"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "problems" / "01-softmax" / "explore.py", folder)
    pictures.draw_all(tmp_path)
    assert [path.name for path in folder.glob("pictures/*")] == ["softmax_scale.png"]


def pictures_of(problem_id: str) -> list[Path]:
    """Return the pictures that a problem's README shows."""
    folder = ROOT / "problems" / problem_id
    names = re.findall(r"!\[[^]]+\]\((pictures/[^)]+)\)", (folder / "README.md").read_text("utf-8"))
    return [folder / name for name in names]


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_the_pictures_of_the_readme_are_small_png_files(problem_id):
    assert pictures_of(problem_id)
    for path in pictures_of(problem_id):
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">I", content[16:20]) == (1200,)  # the width
        assert len(content) < LARGEST
