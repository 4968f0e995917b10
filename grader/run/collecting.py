"""Collect the tests of problems with pytest's public hooks, and convert them into records.

Each test must be a plain function, so that it can run without pytest.
"""

from __future__ import annotations

import inspect
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from grader.code.course_modules import modules_of_course
from grader.code.forbidden import ForbiddenNames
from grader.code.loading import load_module
from grader.course import HIDDEN_MARKER, MANIFEST, Course, Problem
from grader.diagnose.fingerprints import Fingerprints
from grader.diagnose.probe import Probe, load_probe
from grader.errors import CourseError, InternalError

MARKERS = (
    "points(n): the points of a test of a problem",
    "inspection_only: a test that watches how code runs; it judges only code with correct results",
)
"""The pytest markers of problems' tests, with descriptions."""

_OPTIONS = (
    "--collect-only",
    "--import-mode=importlib",
    "--assert=plain",
    "--capture=no",
    "--noconftest",
    "--override-ini=addopts=",
    "--override-ini=pythonpath=",
)

# Plugins of pytest that are disabled. They take time at the end of each run, or change this process
# or the course's folder.
_UNUSED = (
    *("unraisableexception", "threadexception", "faulthandler", "logging", "cacheprovider"),
    *("debugging", "doctest", "junitxml", "legacypath", "pastebin", "recwarn", "monkeypatch"),
    *("setuponly", "setupplan", "stepwise", "subtests", "tmpdir"),
)

_LONGEST_REASON = 3000


def collect(problems: Iterable[Problem], root: Path) -> list[CollectedTest]:
    """Collect the visible and hidden tests of problems, in the order of the test files.

    The result depends only on the course. Other courses in this process, environment variables
    and installed plugins of pytest do not affect it.

    Args:
        problems: the problems whose tests are collected.
        root: the course's folder.

    Raises:
        CourseError: a test file can't be run, has no test, or has a test that is not allowed.
        KeyboardInterrupt: the user interrupted pytest.
    """
    files = [str(problem.test_file) for problem in problems]
    collected = _Collected()
    unused = [f"-pno:{name}" for name in _UNUSED]
    with (
        modules_of_course(root),
        _no_other_plugins(),
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(printed),
    ):
        status = pytest.main([*_OPTIONS, *unused, "--rootdir", str(root), *files], [collected])
    if collected.interrupted:
        raise KeyboardInterrupt
    empty = sorted({*files} - {str(item.path) for item in collected.items})
    reasons = collected.errors or [f"no tests in {file}" for file in empty]
    if reasons or status is not pytest.ExitCode.OK:
        reasons = reasons or [printed.getvalue()[-_LONGEST_REASON:]]
        raise CourseError("pytest could not collect the course's tests:\n" + "\n".join(reasons))
    tests = records(collected.items)
    for item, test in tests.items():
        # This also refuses functions such as setup_module, which pytest turns into fixtures.
        _check_names(item, item.fixturenames, test.case)
    return [*tests.values()]


def _check_names(item: pytest.Function, names: Iterable[str], case: Iterable[str]) -> None:
    for name in sorted({*names} - {*case, *FIXTURES}):
        known = f"the known fixtures are: {', '.join(FIXTURES)}"
        raise refused(item, f"uses the unknown fixture {name}; {known}")


class _Collected:
    """A pytest plugin that stores the collected tests and the errors of collecting files."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.errors: list[str] = []
        self.interrupted = False

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the markers."""
        for marker in MARKERS:
            config.addinivalue_line("markers", marker)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Store the error if a file could not be collected."""
        if report.failed:
            self.errors.append(report.longreprtext[-_LONGEST_REASON:])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Store the tests."""
        self.items = session.items

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Store whether the user interrupted pytest. pytest also calls this hook for errors."""
        self.interrupted |= type(excinfo.value) is KeyboardInterrupt


@contextmanager
def _no_other_plugins() -> Iterator[None]:
    """In a `with` block, ignore installed plugins and pytest's environment variables."""
    before = {name: value for name, value in os.environ.items() if name.startswith("PYTEST_")}
    for name in before:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        os.environ.update(before)


# Records of tests

FIXTURES = ("problem", "solution", "rng")
"""The names of the fixtures that a test may use."""

_MARKS = ("points", "parametrize", "inspection_only")


@dataclass(frozen=True, eq=False)
class ProblemTests:
    """A problem's collected test file.

    Attributes:
        problem: the problem.
        module: the module that pytest imported from the file.
        salt: a secret part of the seeds of the tests' random numbers; empty in a student's copy of
            the course.
        first_hidden_line: the number of the line where the hidden half begins; None if the file
            has no hidden half.
    """

    problem: Problem
    module: ModuleType
    salt: bytes
    first_hidden_line: int | None

    @cached_property
    def values(self) -> str:
        """The library of the course: "torch" or "numpy"."""
        return self.problem.manifest.values

    @cached_property
    def probe(self) -> Probe | None:
        """The problem's probe, loaded at first use.

        Raises:
            CourseError: the probe can't be loaded.
        """
        try:
            return load_probe(self.problem)
        except Exception as error:
            raise CourseError(f"{self.problem.probe_file} can't be loaded: {error}") from error

    @cached_property
    def fingerprints(self) -> Fingerprints:
        """The recorded answers of known mistakes to the probe, read at first use."""
        return Fingerprints.load(self.problem.fingerprints)

    @cached_property
    def solution(self) -> ModuleType:
        """The reference solution, loaded at first use.

        Raises:
            InternalError: the reference can't be loaded.
        """
        path = Course(self.problem.folder.parent.parent).solution(self.problem)
        try:
            return load_module(path, f"solution_{self.problem.id[:2]}")
        except Exception as error:
            raise InternalError(
                f"The reference solution {path} can't be loaded: {error}"
            ) from error


@dataclass(frozen=True, eq=False)  # a case may contain tensors, whose == does not return a bool
class CollectedTest:
    """A test of a problem, or one case of a parametrized test.

    Attributes:
        tests: the collected test file that contains the test.
        id: the function's name. In a case, it is followed by the case's parameters in brackets.
        title: the function's docstring, which students and instructors read.
        hidden: whether the test is in the hidden half.
        points: the points. A parametrized test divides its points equally among its cases.
        function: the test function.
        case: the case's parameters, by name; empty if the test is not parametrized.
        fixtures: the names of the fixtures that the function uses, from `FIXTURES`.
        inspection_only: whether the test watches how code runs, instead of comparing results.
    """

    tests: ProblemTests
    id: str
    title: str
    hidden: bool
    points: float
    function: Callable[..., None]
    case: Mapping[str, Any]
    fixtures: tuple[str, ...]
    inspection_only: bool = False

    @property
    def problem(self) -> Problem:
        """The problem that the test belongs to."""
        return self.tests.problem

    @cached_property
    def forbidden(self) -> tuple[str, ...]:
        """The functions that the student's code may not call in this test."""
        return self.problem.entry.forbidden_where(_names_in(self.function))

    @property
    def name(self) -> str:
        """The function's name, without a case's parameters in brackets."""
        return self.id.partition("[")[0]


def records(items: Iterable[pytest.Item]) -> dict[pytest.Function, CollectedTest]:
    """Convert the pytest items that are tests of problems into records; ignore other items.

    Raises:
        CourseError: a test is not allowed, or pytest imported a different file of the same name.
    """
    of_problems = [
        item for item in items if item.path.name == Problem(item.path.parent).test_file.name
    ]
    functions = [_plain_function(item) for item in of_problems]
    modules = {item.path: item.module for item in functions}
    files = {path: _problem_tests(path, module) for path, module in modules.items()}
    cases = Counter(_function_key(item) for item in functions)
    return {item: _record(item, files[item.path], cases[_function_key(item)]) for item in functions}


def _problem_tests(path: Path, module: ModuleType) -> ProblemTests:
    """Return the `ProblemTests` of a test file.

    Raises:
        CourseError: pytest imported a different module of the same name, or the problem forbids an
            unknown function.
    """
    file = module.__file__
    if file is None or Path(file).resolve() != path.resolve():
        raise CourseError(
            f"{path} can't be tested: Python loaded {file} instead, a module of the same name"
        )
    problem = Problem(path.parent)
    _check_forbidden(problem)
    return ProblemTests(problem, module, _salt(problem), problem.first_hidden_line())


def _check_forbidden(problem: Problem) -> None:
    """Check that the grader knows all functions that a problem forbids.

    Raises:
        CourseError: a forbidden function is unknown.
    """
    try:
        for forbidden in problem.entry.all_forbidden():
            ForbiddenNames(forbidden)
    except KeyError as error:
        known = ", ".join(sorted({*ForbiddenNames().traces.values()}))
        forbids = f"{problem.id} forbids the unknown function {error}"
        raise CourseError(f"{MANIFEST}: {forbids}; the known functions are: {known}") from None


def _salt(problem: Problem) -> bytes:
    """Read the salt of a problem. Return empty bytes in a student's copy of the course.

    Raises:
        CourseError: the salt file does not contain only hexadecimal digits.
    """
    path = Course(problem.folder.parent.parent).salt(problem)
    try:
        return bytes.fromhex(path.read_text(encoding="ascii")) if path.is_file() else b""
    except ValueError:
        raise CourseError(f"{path} must contain only hexadecimal digits") from None


def _names_in(test: Callable[..., None]) -> set[str]:
    """Return the names that a test uses, directly or in functions of the test file that it calls.

    The names include the tested functions and classes of the student's file.
    """
    names: set[str] = set()
    waiting = [test.__code__]
    while waiting:
        code = waiting.pop()
        beside = (test.__globals__.get(name) for name in {*code.co_names} - names)
        names |= {*code.co_names}
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
        waiting += [f.__code__ for f in beside if isinstance(f, FunctionType)]
    return names


def _function_key(item: pytest.Item) -> tuple[Path, str]:
    return item.path, item.name.partition("[")[0]


def _record(item: pytest.Function, tests: ProblemTests, cases: int) -> CollectedTest:
    function, first = item.function, tests.first_hidden_line
    hidden = first is not None and function.__code__.co_firstlineno > first
    arguments = inspect.signature(function).parameters
    if "solution" in arguments and not hidden:
        raise refused(item, f"uses the fixture solution above the line '{HIDDEN_MARKER}'")
    case = item.callspec.params if hasattr(item, "callspec") else {}
    _check_names(item, arguments, case)
    return CollectedTest(
        tests=tests,
        id=item.name,
        title=" ".join((function.__doc__ or item.name).split()).rstrip("."),
        hidden=hidden,
        points=_points(item) / cases,
        function=function,
        case={name: value for name, value in case.items() if name in arguments},
        fixtures=tuple(name for name in FIXTURES if name in arguments),
        inspection_only=item.get_closest_marker("inspection_only") is not None,
    )


def _points(item: pytest.Function) -> float:
    """Return the points of a test function. If it is parametrized, its cases share these points.

    Raises:
        CourseError: the test has no points.
    """
    marker = item.get_closest_marker("points")
    match marker and marker.args:
        case (int() | float() as points,) if points > 0:
            return points
    raise refused(item, "has no points above 0; mark it, for example with @pytest.mark.points(2)")


# Refused tests


def refused(item: pytest.Item, reason: str) -> CourseError:
    """Return the error for a test that is not allowed.

    Args:
        item: the test.
        reason: the rest of a sentence that starts with the test's name.
    """
    return CourseError(f"{item.path}: {item.name} {reason}")


def _plain_function(item: pytest.Item) -> pytest.Function:
    """Return the item unchanged if its test is a plain function.

    Raises:
        CourseError: the test is not a plain function, or has an unknown marker.
    """
    if not isinstance(item, pytest.Function) or item.cls is not None:
        raise refused(item, "is not a plain function")
    for mark in item.iter_markers():
        if mark.name not in _MARKS:
            known = f"the known markers are: {', '.join(_MARKS)}"
            raise refused(item, f"has the unknown marker {mark.name}; {known}")
    return item
