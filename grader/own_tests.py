"""Runs tests that a student wrote on one module, and says how each ended.

They are plain functions of pytest's on the fixture `problem`. They run without pytest's session: in
a worker there is no file to collect, and a run takes a few milliseconds. What pytest would make of
them is in `grader.own_cases`.
"""

from __future__ import annotations

import builtins
import random
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any

import numpy
import torch

from grader.own_cases import Case, Setup, cases
from grader.own_unusable import Refused, Unusable

_SEED = 20
_FILE = "tests of your own"
_NOT_THERE = ("grader", "problem", "worked_example", "probe", "conftest")
"""Modules that the tests don't find, wherever they run."""


class Ended(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    """It raised an exception, an assertion's or another."""
    SKIPPED = "skipped"
    """It was left out, or failed as it was said to."""
    STOPPED = "stopped"
    """It ended the run itself, as `pytest.exit` does; what comes after it is not run."""


@dataclass(frozen=True)
class OwnTest:
    """How one test, or one of its cases, ended.

    Attributes:
        name: the function's.
        ended: how.
        line: the line of the file in which it failed; 0 if it didn't.
    """

    name: str
    ended: Ended
    line: int = 0


Through = tuple[type[BaseException], ...]


def run_own_tests(source: bytes, problem: ModuleType, through: Through = ()) -> list[OwnTest]:
    """Run a file's tests on a module, each from the same random state.

    Args:
        source: what is in the file.
        problem: what its tests are given.
        through: exceptions that no test may be blamed for; they are raised again.

    Raises:
        Unusable: it can't be run.
    """
    found: list[OwnTest] = []
    with _as_it_was():
        for case in cases(_loaded(source, through)):
            found.append(_run(case, problem, through))
            if found[-1].ended is Ended.STOPPED:
                break
    return found


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Undo what tests may set for all of torch."""
    dtype, gradients = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)


def _loaded(source: bytes, through: Through) -> ModuleType:
    module = ModuleType("test_mine")
    module.__file__ = _FILE
    vars(module)["__builtins__"] = vars(builtins) | {"__import__": _import}
    _seed()
    try:
        exec(compile(source, _FILE, "exec", dont_inherit=True), vars(module))
    except through:
        raise
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        raise Unusable(Refused.IMPORT, name, line=_line(error)) from None
    except Exception as error:
        line = _line(error) or getattr(error, "lineno", 0) or 0
        raise Unusable(Refused.LOADING, type(error).__name__, line=line) from None
    except BaseException:
        raise Unusable(Refused.ENDS) from None
    return module


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    """Import a module for the tests, but for those that are the course's own."""
    if name.partition(".")[0] in _NOT_THERE:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return __import__(name, globals, locals, fromlist, level)


def _seed() -> None:
    random.seed(_SEED)
    torch.default_generator.manual_seed(_SEED)
    numpy.random.seed(_SEED)


def _run(case: Case, problem: ModuleType, through: Through) -> OwnTest:
    """Run one test in a random state that is always the same."""
    _seed()
    try:
        if case.is_skipped():
            return OwnTest(case.name, Ended.SKIPPED)
        with Setup(case, {"problem": problem}) as function:
            function()
    except through:
        raise
    except BaseException as exception:  # pytest's own for skip and fail are no Exceptions
        ended = _how(exception)
        if ended is Ended.FAILED and case.may_fail(exception):
            return OwnTest(case.name, Ended.SKIPPED)
        return OwnTest(case.name, ended, _line(exception))
    return OwnTest(case.name, Ended.FAILED if case.must_fail() else Ended.PASSED)


_OF_PYTEST = {
    "Skipped": Ended.SKIPPED,
    "SkipTest": Ended.SKIPPED,
    "XFailed": Ended.SKIPPED,
    "Failed": Ended.FAILED,
    "Exit": Ended.STOPPED,
}


def _how(exception: BaseException) -> Ended:
    """Return how a test ended that raised something; what pytest raises is known by its name."""
    others = Ended.FAILED if isinstance(exception, Exception) else Ended.STOPPED
    return _OF_PYTEST.get(type(exception).__name__, others)


def _line(exception: BaseException) -> int:
    """Return the last line of the student's tests that an exception went through; 0 if none."""
    steps = traceback.walk_tb(exception.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == _FILE]
    return lines[-1] if lines else 0
