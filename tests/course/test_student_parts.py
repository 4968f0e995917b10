"""A model is built from the student's correct classes and functions, and a summary lists them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from grader.course import Course, own_course
from shared import pictures, student_parts

ROOT = own_course().root
ALL = (*student_parts.TRAINING, *student_parts.GENERATION)
YOURS = {
    "softmax": "softmax yours, 01",
    "attention": "attention yours, 05",
    "block": "block yours, 06",
    "model": "model yours, 07",
    "training step": "training step yours, 10",
    "sampling": "sampling yours, 08",
    "cache": "cache yours, 09",
}

Told = Callable[..., tuple[str, str]]


@pytest.fixture
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the course with all problems solved."""
    monkeypatch.setattr(pictures, "own_course", lambda: Course(tmp_path))
    for solution in (ROOT / "solutions").glob("*/problem.py"):
        folder = tmp_path / "problems" / solution.parent.name
        folder.mkdir(parents=True)
        shutil.copy(solution, folder)
    return tmp_path / "problems"


def summary_line(*of_the_course: str) -> str:
    return " · ".join(
        f"{name} the course's" if name in of_the_course else yours for name, yours in YOURS.items()
    )


def test_correct_parts_are_used_and_listed(problems: Path) -> None:
    assert student_parts.load_parts(ALL).summary() == summary_line()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stubs", "not_used", "remarks"),
    [
        (["10"], ["training step"], ["training step: yours, 10, is not written yet."]),
        (
            ["05"],
            ["softmax", "attention"],
            [
                "softmax: yours, 01, is correct, but it needs your attention, from 05.",
                "attention: yours, 05, is not written yet.",
            ],
        ),
        (
            ["08", "09"],
            ["sampling", "cache"],
            ["sampling: yours, 08, is not written yet.", "cache: yours, 09, is not written yet."],
        ),
    ],
)
def test_the_course_provides_missing_parts(
    problems: Path, stubs: list[str], not_used: list[str], remarks: list[str]
) -> None:
    for stub in (ROOT / "problems").glob("*/problem.py"):
        if stub.parent.name[:2] in stubs:
            shutil.copy(stub, problems / stub.parent.name)
    parts = student_parts.load_parts(ALL)
    assert parts.summary().splitlines() == [summary_line(*not_used), *remarks]
    logits, loss = parts.model(student_parts.CONFIG)(student_parts.TOKENS, student_parts.TOKENS)
    assert logits.shape == (*student_parts.TOKENS.shape, student_parts.CONFIG.vocab_size)
    loss.backward()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem_id", "right", "wrong", "name"),
    [
        ("01-softmax", "exponentials.sum(dim,", "exponentials.sum(-2,", "softmax"),
        ("05-multi-head-attention", "triu(1)", "triu(2)", "attention"),
        ("06-transformer-block", "return x + self.mlp", "return self.mlp", "block"),
        ("07-tiny-gpt", 'self.transformer["ln_f"](x)', "x", "model"),
        ("09-kv-cache", "n_past, n_past + idx.shape[-1]", "0, idx.shape[-1]", "cache"),
        ("10-training-step", "optimizer.zero_grad()", "pass", "training step"),
    ],
)
def test_a_wrong_part_is_not_used(
    problems: Path, problem_id: str, right: str, wrong: str, name: str
) -> None:
    path = problems / problem_id / "problem.py"
    source = path.read_text("utf-8")
    assert right in source
    path.write_text(source.replace(right, wrong), encoding="utf-8")
    output = student_parts.load_parts(ALL).summary()
    assert f"{name} the course's" in output
    assert f"{name}: yours, {problem_id[:2]}, " in output


def test_a_softmax_that_the_attention_does_not_call_is_not_listed(problems: Path) -> None:
    variants = ROOT / "solutions" / "05-multi-head-attention" / "variants"
    file = variants / "own_softmax_and_dropout.py"
    shutil.copy(file, problems / "05-multi-head-attention" / "problem.py")
    output = student_parts.load_parts(ALL).summary()
    assert output.startswith(summary_line("softmax"))
    assert "is correct, but your other parts do not call it" in output


def test_the_softmax_of_01_is_called_in_the_attention_of_05(problems: Path) -> None:
    path = problems / "01-softmax" / "problem.py"
    counting = "\n\nCALLS = []\nright_softmax = softmax\n\n\n"
    counting += (
        "def softmax(x, dim=-1):\n    CALLS.append(x.shape)\n    return right_softmax(x, dim)\n"
    )
    path.write_text(path.read_text("utf-8") + counting, encoding="utf-8")
    parts = student_parts.load_parts()
    calls = parts["softmax"].CALLS
    calls.clear()
    parts.model(student_parts.CONFIG)(student_parts.TOKENS)
    assert [tuple(shape) for shape in calls] == [(2, 3, 6, 6)] * student_parts.CONFIG.n_layer


def test_the_global_random_state_is_unchanged(problems: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    student_parts.load_parts(["softmax", "sampling"])
    assert torch.equal(torch.rand(3), expected)


def test_a_text_longer_than_the_cache_has_correct_logits(problems: Path) -> None:
    code = pictures.students_module("09-kv-cache")
    model = code.CachedGPT(code.GPTConfig(**vars(student_parts.CONFIG))).eval()
    read, tokens = student_parts.CachedLogits(model, student_parts.CONFIG.n_positions), [1, 2, 3]
    for number in range(30):
        logits = read(tokens)
        assert logits.shape == (1, student_parts.CONFIG.vocab_size)
        begin = read.dropped
        with torch.no_grad():
            whole = model(torch.tensor([tokens[begin:]]))[0][:, -1]
        assert torch.allclose(logits, whole, atol=1e-5)
        tokens.append(number % 11)
