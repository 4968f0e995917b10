"""Runs tests that a student wrote on one module, and says how each ended.

They are plain functions `test_...(problem)` at the top of a file, with `assert`, `pytest.raises`,
`pytest.approx` and `pytest.mark.parametrize`. They run without pytest's session: in a worker there
is no file to collect, and a run takes a few milliseconds.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import linecache
import random
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any

import numpy.random
import pytest  # noqa: F401  (what the tests import; a worker would load it anew each time)
import torch

from grader.code.loading import STUDENT_MODULE
from grader.course import SUBMISSION_FILE

MOST_TESTS = 500
"""Tests, cases counted, of one file."""

MOST_BYTES = 64 << 10
"""The largest size of a file: its copies are looked for outside of the sandbox."""

_SEED = 20
_FILE = "tests of your own"
_NOT_THERE = ("grader", "problem", "shared", "probe", "conftest")
"""Modules that the tests don't find, wherever they run."""

_INSTEAD = "A test is a plain function such as test_rows(problem)."


class RefusedTests(StrEnum):
    """Why a file can't be run as tests, with what to do."""

    LOADING = "It stops while it is read{where}: {name}."
    IMPORT = (
        "It imports {name}{where}, which is not there. A file of tests has Python, torch, NumPy "
        "and pytest, and gets `problem` as an argument of each test."
    )
    ENDS = "It ends the run while it is read."
    NO_TEST = f"It has no test. {_INSTEAD}"
    TOO_LONG = f"It is longer than {MOST_BYTES >> 10} KB."
    TOO_MANY = f"It has more than {MOST_TESTS} tests."
    CLASS = f"{{name}} is a class{{where}}, which is not run here. {_INSTEAD}"
    FIXTURE = (
        "{name} is a fixture{where}, which is not run here. Make what a test needs in the test, or "
        "in a function that it calls."
    )
    SETUP = "{name} would not be run here{where}. Call it in the tests that need it."
    MARK = "{name} has the mark {other}. The only mark that is known here is parametrize."
    NOT_AT_TOP = (
        "{name} is not the function that is written with `def {name}` at the top level of the "
        "file: it stands deeper, or something such as a decorator has put another one in its "
        f"place. {_INSTEAD}"
    )
    NOT_PLAIN = "{name} is no plain function: it must neither be async nor yield."
    CASES = "The cases of {name} don't fit the names that they are for."
    ASKS = (
        "{name} asks for {other}. A test gets `problem`, and what its own parametrize gives it; "
        "there are no fixtures."
    )
    ODD = "It can't be read as a file of tests."
    REPEATS = "All of its tests repeat visible tests of the course. Write one of your own."
    DIFFERS = "Its tests are not the same each time that it is read. They must be."


class Unusable(Exception):  # noqa: N818  (it says what the file is)
    """The file is not one of plain tests on `problem`; the text says what to do.

    Args:
        reason: why.
        name: what it is about.
        other: what else.
        line: of the file; 0 if no line is meant.
    """

    def __init__(
        self, reason: RefusedTests, name: str = "", other: str = "", line: int = 0
    ) -> None:
        where = f", line {line}" if line else ""
        super().__init__(reason.value.format(name=name, other=other, where=where))
        self.reason, self.name, self.other, self.line = reason, name, other, line


class Ended(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    """It raised an exception, an assertion's or another."""
    STOPPED = "stopped"
    """It ended the run itself, or was skipped; what comes after it is not run."""
    NOT_RUN = "not run"
    """It was left out, or the run had ended before its turn came."""


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
Case = tuple[str, Callable[..., object], dict[str, Any]]
"""A test's name, its function, and the arguments of this case."""


def run_own_tests(
    source: bytes,
    problem: ModuleType,
    through: Through = (),
    *,
    without: Collection[str] = (),
    first: Sequence[str] | None = None,
) -> list[OwnTest]:
    """Run a file's tests on a module, each from the same random state; return them in their order.

    Args:
        source: what is in the file.
        problem: what its tests are given.
        through: exceptions that no test may be blamed for; they are raised again.
        without: the names of tests that are left out.
        first: the names of tests to begin with. If it is given, one test that fails is enough, and
            ends the run.

    Raises:
        Unusable: it can't be run.
    """
    ends = {Ended.STOPPED} if first is None else {Ended.STOPPED, Ended.FAILED}
    rank = {name: number for number, name in enumerate(first or ())}
    with _as_it_was():
        cases = _all_cases(*_loaded(source, through))
        found = [OwnTest(name, Ended.NOT_RUN) for name, _, _ in cases]
        asked = [number for number, test in enumerate(found) if test.name not in without]
        if not asked:
            raise Unusable(RefusedTests.REPEATS)
        for number in sorted(asked, key=lambda number: rank.get(found[number].name, len(rank))):
            found[number] = _run(cases[number], problem, through)
            if found[number].ended in ends:
                break
    return found


def as_problem(source: bytes) -> ModuleType:
    """Return a file of the course, which may be trusted, as the module that tests are given."""
    module = ModuleType(STUDENT_MODULE)
    sys.modules[STUDENT_MODULE] = module  # dataclasses look their module up
    lines = source.decode().splitlines(keepends=True)
    linecache.cache[SUBMISSION_FILE] = (len(source), None, lines, SUBMISSION_FILE)  # for torch.jit
    exec(compile(source, SUBMISSION_FILE, "exec"), vars(module))
    return module


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Undo what tests may set for all of torch."""
    dtype, gradients = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)


# Reading the file


def _loaded(source: bytes, through: Through) -> tuple[ModuleType, dict[str, int]]:
    """Return the file as a module, and where the functions begin that stand at its top level."""
    module = ModuleType("test_mine")
    module.__file__ = _FILE
    vars(module)["__builtins__"] = vars(builtins) | {"__import__": _import}
    _seed()
    try:
        tree = ast.parse(source, _FILE)
        _require_plain(tree)
        exec(compile(tree, _FILE, "exec", dont_inherit=True), vars(module))
    except through:
        raise
    except Unusable:
        raise
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        raise Unusable(RefusedTests.IMPORT, name, line=_line(error)) from None
    except Exception as error:
        line = _line(error) or getattr(error, "lineno", 0) or 0
        raise Unusable(RefusedTests.LOADING, type(error).__name__, line=line) from None
    except BaseException:
        raise Unusable(RefusedTests.ENDS) from None
    functions = (each for each in tree.body if isinstance(each, _FUNCTIONS))
    return module, {each.name: _first_line(each) for each in functions}


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return where a function begins: at its first decorator, if it has one."""
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


_SETUPS = {
    f"{when}_{of}"
    for when in ("setup", "teardown")
    for of in ("module", "function", "class", "method")
}


def _require_plain(tree: ast.Module) -> None:
    """Look for what pytest would run beside functions.

    Raises:
        Unusable: there is something.
    """
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            of_unittest = any("TestCase" in ast.unparse(base) for base in node.bases)
            if node.name.startswith("Test") or of_unittest:
                raise Unusable(RefusedTests.CLASS, node.name, line=node.lineno)
        elif isinstance(node, ast.FunctionDef):
            made_of = (ast.unparse(each).partition("(")[0] for each in node.decorator_list)
            if any(name.rpartition(".")[2] == "fixture" for name in made_of):
                raise Unusable(RefusedTests.FIXTURE, node.name, line=node.lineno)
            if node.name in _SETUPS:
                raise Unusable(RefusedTests.SETUP, node.name, line=node.lineno)


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> ModuleType:
    """Import a module for the tests, but for those that are the course's own."""
    if name.partition(".")[0] in _NOT_THERE:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return __import__(name, globals, locals, fromlist, level)


# Its tests, and the cases of each


def _all_cases(module: ModuleType, at_top: Mapping[str, int]) -> list[Case]:
    """Return all tests of a module, each case by itself.

    Args:
        module: the file.
        at_top: by the names of the functions at its top level, the lines at which they begin.

    Raises:
        Unusable: there is none, or one is not of the kind that is run here.
    """
    try:
        found = [*itertools.islice(_cases(module, at_top), MOST_TESTS + 1)]
    except Unusable:
        raise
    except Exception:
        raise Unusable(RefusedTests.ODD) from None
    if not found:
        raise Unusable(RefusedTests.NO_TEST)
    if len(found) > MOST_TESTS:
        raise Unusable(RefusedTests.TOO_MANY)
    return found


def _cases(module: ModuleType, at_top: Mapping[str, int]) -> Iterator[Case]:
    _parametrize(module, "pytestmark")
    for name, function in [*vars(module).items()]:
        if not (name.startswith("test") and inspect.isfunction(function)):
            continue
        # `repeats` has seen no other function of that name.
        if at_top.get(name) != inspect.unwrap(function).__code__.co_firstlineno:
            raise Unusable(RefusedTests.NOT_AT_TOP, name)
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise Unusable(RefusedTests.NOT_PLAIN, name)
        asked = _asked(function)
        for given in _cases_of(function, name):
            unknown = [each for each in asked if each != "problem" and each not in given]
            if unknown:
                raise Unusable(RefusedTests.ASKS, name, unknown[0])
            yield name, function, given


def _parametrize(thing: Any, name: str) -> list[Any]:
    """Return the marks on a test, or on all of a file.

    Raises:
        Unusable: one is another than parametrize.
    """
    marks = getattr(thing, "pytestmark", [])
    marks = [*marks] if isinstance(marks, list | tuple) else [marks]
    for mark in marks:
        if mark.name != "parametrize":
            raise Unusable(RefusedTests.MARK, name, str(mark.name))
    return marks


def _asked(function: Callable[..., object]) -> list[str]:
    """Return the names of the arguments without which a function can't be called."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variable]


def _cases_of(function: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each case of a test.

    Raises:
        Unusable: values don't fit the names that they are for.
    """
    marks = _parametrize(function, name)
    try:
        given = [
            [*itertools.islice(_values(name, *m.args, **m.kwargs), MOST_TESTS + 1)] for m in marks
        ]
    except Unusable:
        raise
    except Exception:
        raise Unusable(RefusedTests.CASES, name) from None
    for chosen in itertools.product(*given):
        yield {key: value for part in chosen for key, value in part.items()}


def _values(test: str, argnames: Any, argvalues: Any, **_: Any) -> Iterator[dict[str, Any]]:
    """Yield what each value of a mark gives to the arguments that it names."""
    names = argnames.split(",") if isinstance(argnames, str) else argnames
    names = [name.strip() for name in names if name.strip()]
    alone = isinstance(argnames, str) and len(names) == 1
    for value in argvalues:
        of_param: Any = getattr(value, "values", None)  # those of pytest.param
        is_param = isinstance(of_param, tuple)
        if is_param and value.marks:
            raise Unusable(RefusedTests.MARK, test, str([*value.marks][0].name))
        given: Any = of_param if is_param else (value,) if alone else value
        yield dict(zip(names, given, strict=True))


# Running them


def _seed() -> None:
    random.seed(_SEED)
    torch.default_generator.manual_seed(_SEED)
    numpy.random.seed(_SEED)


def _run(case: Case, problem: ModuleType, through: Through) -> OwnTest:
    """Run one test in a random state that is always the same."""
    name, function, given = case
    _seed()
    try:
        if "problem" in inspect.signature(function).parameters:
            given = given | {"problem": problem}
        function(**given)
    except through:
        raise
    except BaseException as exception:  # pytest's own for fail and skip are no Exceptions
        return OwnTest(name, _how(exception), _line(exception))
    return OwnTest(name, Ended.PASSED)


def _how(exception: BaseException) -> Ended:
    """Return how a test ended that raised something; what pytest raises is known by its name."""
    others = Ended.FAILED if isinstance(exception, Exception) else Ended.STOPPED
    return {"Failed": Ended.FAILED, "Exit": Ended.STOPPED}.get(type(exception).__name__, others)


def _line(exception: BaseException) -> int:
    """Return the last line of the student's tests that an exception went through; 0 if none."""
    steps = traceback.walk_tb(exception.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == _FILE]
    return lines[-1] if lines else 0
