"""`talk_command.py` uses a student's correct code, applies settings and reports invalid input."""

from __future__ import annotations

import argparse
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from grader.course import Course, own_course
from shared import pictures, talk_command
from shared.oracles import torch_gpt

ROOT = own_course().root
SIZES = {"vocab_size": 6, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
CONFIG = SIZES | {"dropout": 0.0, "bias": True}
CHARACTERS = "\t\nabc "

Talk = Callable[..., str]


@pytest.fixture
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the course with the stubs of problems 07 and 08."""
    monkeypatch.setattr(pictures, "own_course", lambda: Course(tmp_path))
    monkeypatch.setattr(talk_command, "LENGTH", 24)
    for problem_id in (talk_command.MODEL, talk_command.SAMPLING):
        folder = tmp_path / "problems" / problem_id
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "problems" / problem_id / "problem.py", folder / "problem.py")
    return tmp_path / "problems"


@pytest.fixture
def talk(problems: Path) -> Talk:
    """Save a small model. Return a function that types lines to `talk` and returns the output."""
    torch.manual_seed(3)
    model = torch_gpt.TinyGPT(argparse.Namespace(**CONFIG))
    kept = {"config": CONFIG, "state": model.gpt2_weights(), "characters": CHARACTERS}
    torch.save(kept, problems / talk_command.MODEL / "model.pt")

    def run(*lines: str, **options: Any) -> str:
        shown, typed = io.StringIO(), iter(lines)

        def ask(prompt: str) -> str:
            shown.write(prompt)
            return next(typed, "")

        console = Console(file=shown, highlight=False, markup=False, width=100)
        talk_command.talk(console, ask, **options)
        return shown.getvalue()

    return run


def test_without_a_model_the_command_to_train_is_printed(problems: Path) -> None:
    with pytest.raises(SystemExit, match="There is no trained model yet") as ended:
        talk_command.talk()
    assert "cd ../07-tiny-gpt\n    uv run python explore.py" in str(ended.value)
    (problems / talk_command.MODEL / "model.pt").write_bytes(b"spoilt")
    with pytest.raises(SystemExit, match="The trained model can't be read"):
        talk_command.talk()


def test_with_stubs_the_code_of_the_course_is_used(talk: Talk) -> None:
    shown = talk("abc")
    assert "The course's model (until your problem 07 is correct) reads" in shown
    assert "the course's sample (until yours is correct) draws" in shown
    written = shown.partition("> abc")[2].rpartition("\n[")[0]
    assert len(written.replace(" " * 4, "\t")) == 24 + 1


def test_the_students_code_is_used_if_it_is_correct(problems: Path, talk: Talk) -> None:
    for problem_id in (talk_command.MODEL, talk_command.SAMPLING):
        shutil.copy(ROOT / "solutions" / problem_id / "problem.py", problems / problem_id)
    shown = talk("ab")
    assert "Your model reads" in shown
    assert "your sample draws" in shown
    path = problems / talk_command.SAMPLING / "problem.py"
    source = path.read_text("utf-8")
    wrong = source.replace("before >= p", "before + probabilities >= p")
    assert wrong != source
    path.write_text(wrong, encoding="utf-8")
    assert "the course's sample (until yours is correct) draws" in talk()


def test_typed_settings_are_applied_and_shown(talk: Talk) -> None:
    shown = talk("T 0.5", "k 3", "p", "k", "T=0", "p=0.25")
    settings = ["[T 0.8  p 0.95] >", "[T 0.5  p 0.95] >", "[T 0.5  k 3  p 0.95] >"]
    settings += ["[T 0.5  k 3] >", "[T 0.5] >", "[T 0] >", "[T 0  p 0.25] >"]
    assert [line.strip() for line in shown.splitlines() if line.startswith("[")] == settings
    refused = talk("k 0", "p 3")
    assert "Not changed: k must be at least 1" in refused
    assert "Not changed: p must be above 0" in refused
    assert refused.count("[T 0.8  p 0.95] >") == 3


def test_unknown_characters_are_reported(talk: Talk) -> None:
    assert "The model does not know the characters Xé" in talk("aXbé")


def test_the_next_characters_are_shown_as_bars(talk: Talk) -> None:
    shown = talk("? ab")
    assert "T = 0.5" in shown
    assert "%" in shown
    assert "█" in shown


def test_talking_continues_if_the_students_sample_fails(
    problems: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(*_: object, **__: object) -> torch.Tensor:
        raise RuntimeError("no luck")

    monkeypatch.setattr(talk_command, "_sample", lambda: (sample, "your sample"))
    shown = talk("abc", "T 0.5")
    assert "Your code raised RuntimeError: no luck" in shown
    assert "[T 0.5" in shown


@pytest.fixture
def all_solved(problems: Path) -> Path:
    """Solve all problems in the copy, and return their folder."""
    for solution in (ROOT / "solutions").glob("*/problem.py"):
        (problems / solution.parent.name).mkdir(exist_ok=True)
        shutil.copy(solution, problems / solution.parent.name / "problem.py")
    return problems


ALL_YOURS = (
    "softmax yours, 01 · attention yours, 05 · block yours, 06 · model yours, 07 · "
    "sampling yours, 08 · cache yours, 09"
)


def test_with_mine_the_students_parts_are_used_and_listed(all_solved: Path, talk: Talk) -> None:
    shown = talk("T 0", "abcab cab", mine=True)
    assert shown.startswith(ALL_YOURS + "\n")
    assert "Your code stops" not in shown


def test_text_is_the_same_with_the_cache_as_without_it(all_solved: Path, talk: Talk) -> None:
    def first_characters(mine: bool) -> str:  # before the context is full
        return talk("T 0", "ab", mine=mine).partition("] > ab")[2].replace("    ", "\t")[:6]

    assert first_characters(mine=True) == first_characters(mine=False)


def test_models_are_picked_by_name(problems: Path, talk: Talk) -> None:
    folder = problems / talk_command.MODEL
    kept = torch.load(folder / "model.pt", weights_only=True)
    torch.save(kept | {"characters": "\t\nабв "}, folder / "model-poems.pt")
    shown = talk(name="poems")
    assert "[T 0.8" in shown
    assert "The model does not know the characters a" in talk("a", name="poems")
    assert "The model does not know the characters a" not in talk("a", name="model")
    assert "Use --talk NAME" in talk()
    with pytest.raises(SystemExit, match="no model with the name novels. Saved models: .*poems"):
        talk(name="novels")
