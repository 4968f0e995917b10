"""The message about an exception shows the tensors of the line and the probable mistake."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
import torch
from syrupy.assertion import SnapshotAssertion

from grader.diagnose.error_hint import error_hint
from grader.run.verdict import operands_of

Q, K, X = torch.ones(2, 3, 5), torch.ones(2, 4, 5), torch.ones(2, 3, 4)


def output(line: str, **values: object) -> tuple[dict[str, str], str]:
    """Run a line with these variables, and return its operands and the hint on its exception."""
    names = dict(values)
    with pytest.raises(Exception) as raised:  # noqa: PT011  (torch chooses the exception)
        exec(line, {"torch": torch}, names)
    forms = operands_of(last(raised), line)
    return forms, error_hint(str(raised.value), forms)


def last(raised: pytest.ExceptionInfo[BaseException]) -> FrameType:
    """Return the frame in which the exception was raised."""
    frames = [entry.frame.raw for entry in raised.traceback]
    return next(frame for frame in frames if frame.f_code.co_filename == "<string>")


LINES: list[tuple[str, dict[str, object]]] = [
    ("scores = q @ k", {"q": Q, "k": K}),
    ("scores = torch.bmm(q, k)", {"q": Q, "k": K}),
    ("y = w @ v", {"w": X, "v": Q}),
    ("scores = q @ k.transpose(0, 1)", {"q": torch.ones(2, 5, 7), "k": torch.ones(2, 5, 7)}),
    ("y = x - x.amax(-1)", {"x": X}),
    ("y = e / e.sum(dim=-1)", {"e": X}),
    ("y = e / e.sum(-1)", {"e": torch.ones(2, 4, 4)}),
    ("y = e / e.sum(-1)", {"e": torch.ones(2, 3, 4, 4)}),
    ("y = 1 / e.sum(-1) * e", {"e": X}),
    ("y = e / s", {"e": X, "s": X.sum(-1)}),
    ("y = e / e.sum(1)", {"e": X}),
    ("y = x / s", {"x": X, "s": torch.ones(2, 3, 3)}),
    ("y = x + m", {"x": torch.ones(2, 6, 6), "m": torch.ones(3, 3)}),
    ("y = x + m", {"x": X, "m": torch.ones(2, 2)}),
    ("y = x.softmax(3)", {"x": X}),
    ("y = x.transpose(1, 2).view(2, 12)", {"x": X}),
    ("y = x.view(2, 3, 5)", {"x": X}),
    ("x /= 2", {"x": X.clone().requires_grad_()}),
    ("y = q.double() @ q.mT", {"q": Q}),
    ("y = x.permute(0, 2, 1)", {"x": torch.ones(1, 2, 3, 4)}),
    ("y = x.masked_fill(m, 0.0)", {"x": X, "m": X}),
    ("y = torch.where(m, x, x)", {"x": X, "m": X}),
    ("y = 1 if x > 0 else 2", {"x": X}),
    ("y = x - x.max(-1)", {"x": X}),
    ("y = float(x)", {"x": X}),
    ("y = x.nothing", {"x": X}),
    (
        "y = e[idx] + p[torch.arange(2)]",
        {"e": torch.ones(7, 8), "p": torch.ones(6, 8), "idx": torch.ones(2, 5).long()},
    ),
    ("y = x + z", {"x": X, "z": torch.ones(7)}),
]
"""Lines that raise an exception, with the values of their variables."""


@pytest.mark.parametrize(("line", "values"), LINES, ids=[line for line, _ in LINES])
def test_the_probable_mistake(
    line: str, values: dict[str, object], snapshot: SnapshotAssertion
) -> None:
    assert output(line, **values)[1] == snapshot


def test_the_shapes_of_the_tensors_in_the_line() -> None:
    forms, _ = output("scores = q @ k", q=Q, k=K.double(), other=X)
    assert forms == {"q": "(2, 3, 5) float32", "k": "(2, 4, 5) float64"}


def test_the_numbers_of_the_arguments() -> None:
    def keep(logits: torch.Tensor, p: float, k: int = 3, is_sorted: bool = True) -> dict[str, str]:
        return operands_of(sys._getframe(), "cut = logits.gather(-1, order)")

    assert keep(K, 1.0) == {"logits": "(2, 4, 5) float32", "p": "1.0", "k": "3"}


def test_a_modules_tensors_are_found_and_no_property_runs() -> None:
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)
            self.register_buffer("mask", torch.ones(3, 3, dtype=torch.bool))

        @property
        def loud(self) -> torch.Tensor:
            raise AssertionError("a property ran")

    self = Module()
    assert isinstance(self, torch.nn.Module)
    forms = operands_of(sys._getframe(), "y = self.loud + self.layer.weight @ self.mask")
    assert forms == {"self.layer.weight": "(3, 2) float32", "self.mask": "(3, 3) bool"}


@pytest.mark.parametrize("line", ["", "for x in", "if x.dim() == 3:", "x)", "\0", "é = x[" * 500])
def test_an_incomplete_statement_is_ignored(line: str) -> None:
    assert set(operands_of(sys._getframe(), line)) <= {"line"}
