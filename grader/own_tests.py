"""Runs tests that a student wrote on one module, and says how each ended.

They are plain functions of pytest's on the fixture `problem`. They run without pytest's session: in
a worker there is no file to collect, and a run takes a few milliseconds.
"""

from __future__ import annotations

import inspect
import itertools
import random
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any, TypeVar

import torch

MOST_TESTS = 500
"""Tests, cases counted, of one file."""

_SEED = 20
_FILE = "tests of your own"

T = TypeVar("T")


class Ended(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    """It raised an exception, an assertion's or another."""
    SKIPPED = "skipped"
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


class Unusable(Exception):  # noqa: N818  (it says what the file is)
    """The file is not one of plain tests on the fixture `problem`; the text says what to do."""


def run_own_tests(source: bytes, problem: ModuleType) -> list[OwnTest]:
    """Run a file's tests on a module, each from the same random state.

    Args:
        source: what is in the file.
        problem: what its tests are given.

    Raises:
        Unusable: it can't be run.
    """
    found: list[OwnTest] = []
    for name, function, case in _tests(_loaded(source)):
        found.append(_run(name, function, case, problem))
        if found[-1].ended is Ended.STOPPED:
            break
    return found


def _loaded(source: bytes) -> ModuleType:
    module = ModuleType("test_mine")
    module.__file__ = _FILE
    try:
        exec(compile(source, _FILE, "exec"), vars(module))
    except Exception as error:
        line = _line(error) or getattr(error, "lineno", 0)
        where = f", line {line}" if line else ""
        raise Unusable(f"It stops while it is read{where}: {type(error).__name__}.") from None
    except BaseException:
        raise Unusable("It ends the run while it is read.") from None
    return module


Case = dict[str, Any]


def _tests(module: ModuleType) -> list[tuple[str, Any, Case]]:
    """Return the tests: the function's name, the function, and the arguments of a case.

    Raises:
        Unusable: there is none, or one is no plain function on `problem`.
    """
    members = [(n, value) for n, value in list(vars(module).items()) if n.startswith("test")]
    functions = [(name, value) for name, value in members if inspect.isfunction(value)]
    found = [(name, each, case) for name, each in functions for case in _cases(name, each)]
    if not found:
        raise Unusable("It has no test. A test is a function such as test_rows(problem).")
    if len(found) > MOST_TESTS:
        raise Unusable(f"It has more than {MOST_TESTS} tests.")
    return found


def _cases(name: str, function: Any) -> list[Case]:
    """Return the arguments of each case of a test, but for `problem`.

    Raises:
        Unusable: it is no plain function, or asks for something else.
    """
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise Unusable(f"{name} is no plain function.")
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    try:
        given = [[*_first(_values(*mark.args, **mark.kwargs))] for mark in marks]
    except Exception:
        raise Unusable(f"The cases of {name} don't fit the names that they are for.") from None
    product = _first(itertools.product(*given))
    cases = [{key: v for part in chosen for key, v in part.items()} for chosen in product]
    asked = inspect.signature(function).parameters.values()
    needed = {each.name for each in asked if each.default is each.empty}
    unknown = sorted(needed - {"problem"}.union(*cases[:1]))
    if unknown:
        raise Unusable(
            f"{name} asks for {' and '.join(unknown)}; a test gets `problem`, and what its own "
            "parametrize gives it."
        )
    return cases


def _first(many: Iterable[T]) -> Iterator[T]:
    """Yield no more than tells that there are too many."""
    return itertools.islice(many, MOST_TESTS + 1)


def _values(argnames: Any, argvalues: Any, **_: Any) -> Iterator[Case]:
    """Yield what each value of a mark gives to the arguments that it names."""
    names = argnames.split(",") if isinstance(argnames, str) else argnames
    alone = isinstance(argnames, str) and len(names) == 1
    for value in argvalues:
        of_param = getattr(value, "values", None)  # those of pytest.param
        given = of_param if isinstance(of_param, tuple) else (value,) if alone else value
        yield dict(zip((name.strip() for name in names), given, strict=True))


def _run(name: str, function: Any, case: Case, problem: ModuleType) -> OwnTest:
    """Run one test in a random state that is always the same."""
    random.seed(_SEED)
    torch.default_generator.manual_seed(_SEED)
    if any(mark.name == "skip" for mark in getattr(function, "pytestmark", [])):
        return OwnTest(name, Ended.SKIPPED)
    if "problem" in inspect.signature(function).parameters:
        case = case | {"problem": problem}
    try:
        function(**case)
    except BaseException as exception:  # pytest's own for skip and fail are no Exceptions
        return OwnTest(name, _how(exception), _line(exception))
    return OwnTest(name, Ended.PASSED)


_OF_PYTEST = {"Skipped": Ended.SKIPPED, "Failed": Ended.FAILED, "Exit": Ended.STOPPED}


def _how(exception: BaseException) -> Ended:
    """Return how a test ended that raised something; what pytest raises is known by its name."""
    others = Ended.FAILED if isinstance(exception, Exception) else Ended.STOPPED
    return _OF_PYTEST.get(type(exception).__name__, others)


def _line(exception: BaseException) -> int:
    """Return the last line of the student's tests that an exception went through; 0 if none."""
    steps = traceback.walk_tb(exception.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == _FILE]
    return lines[-1] if lines else 0
