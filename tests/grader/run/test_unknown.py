"""Any operation on `UNKNOWN` returns `UNKNOWN`, and reading its value raises an exception."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from grader.code.course_modules import modules_of_course
from grader.course import own_course
from grader.run.unknown import UNKNOWN, AnswerRead, is_unknown, without_oracles

ONES = torch.ones(2, 2)
ROWS = numpy.ones((2, 2))

GIVES: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda u: u.weight.grad,
    "method": lambda u: u.softmax(-1).mean(dim=0),
    "index": lambda u: u[0, :2],
    "arithmetic": lambda u: -(2 * u + 1) / u**2 - u // 3 % 2,
    "matrix product": lambda u: ONES @ u @ ONES,
    "comparison": lambda u: (u == 0) & (u <= ONES) | ~(u != 1),
    "tensor first": lambda u: ONES + u,
    "tensor method": lambda u: ONES.mul(u),
    "function of torch": lambda u: torch.cat([u, ONES]),
    "function of a layer": lambda u: F.linear(u, ONES),
    "layer": lambda u: nn.Linear(2, 2)(u),
    "torch.equal": lambda u: torch.equal(ONES, u),
    "array first": lambda u: ROWS * u,
    "ufunc": lambda u: numpy.exp(u),
    "function of NumPy": lambda u: numpy.concatenate([u, ROWS]),
    "copy": lambda u: copy.deepcopy(copy.copy(u)),
    "abs and round": lambda u: abs(round(u, 2)),
    "write into it": lambda u: (setattr(u, "x", 1), u.__setitem__(0, 1), u)[2],
    "in place": lambda u: u.add_(ONES),
    "out": lambda u: torch.add(ONES, ONES, out=u),
}


@pytest.mark.parametrize("operation", GIVES.values(), ids=GIVES)
def test_an_operation_gives_unknown(operation: Callable[[Any], Any]) -> None:
    assert is_unknown(operation(UNKNOWN))


def added_in_place(target: Any, unknown: Any) -> None:
    target += unknown


READS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "not": lambda u: not u,
    "len": len,
    "loop": lambda u: [*u],
    "unpack": lambda u: (lambda a, b: a)(*u),
    "float": float,
    "int": int,
    "range": range,
    "in": lambda u: 1 in u,
    "key": lambda u: {u: 1},
    "text": str,
    "label": lambda u: f"f(x) is {u}",
    "format": "{:.3f}".format,
    "with": lambda u: u.__enter__(),
    "branch on a comparison": lambda u: 1 if u > 0 else 2,
    "branch on torch.equal": lambda u: 1 if torch.equal(ONES, u) else 2,
    "tensor": lambda u: torch.tensor([u]),
    "array": lambda u: numpy.asarray(u),
    "set entry of a tensor": lambda u: ONES.clone().__setitem__(0, u),
    "set entry of an array": lambda u: ROWS.copy().__setitem__(0, u),
    "tensor += ": lambda u: added_in_place(ONES.clone(), u),
    "array +=": lambda u: added_in_place(ROWS.copy(), u),
    "copy_": lambda u: ONES.clone().copy_(u),
    "masked_fill_": lambda u: ONES.clone().masked_fill_(u, 0),
    "out=": lambda u: torch.add(u, u, out=ONES.clone()),
    "ufunc out=": lambda u: numpy.add(u, u, out=ROWS.copy()),
    "copyto": lambda u: numpy.copyto(ROWS.copy(), u),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_unknown_is_refused(read: Callable[[Any], Any]) -> None:
    with pytest.raises((AnswerRead, TypeError)) as caught:
        read(UNKNOWN)
    if caught.type is not AnswerRead:
        assert "Unknown" in str(caught.value) or "UNKNOWN" in str(caught.value)


def test_a_debugger_can_show_unknown() -> None:
    assert repr(UNKNOWN) == "UNKNOWN"


@pytest.mark.parametrize(
    "how", ["from shared.oracles.no_file import RIGHT", "from shared.oracles import RIGHT"]
)
def test_a_worker_imports_oracles_without_their_files(how: str) -> None:
    names: dict[str, Any] = {}
    with modules_of_course(own_course().root), without_oracles():
        exec(how, names)
    assert names["RIGHT"] is UNKNOWN
