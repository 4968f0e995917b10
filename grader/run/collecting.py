"""Collects the tests of problems through pytest, by its public hooks, and hands over records.

Nothing of pytest is kept.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from grader.code.course_modules import modules_of_course
from grader.course import Problem
from grader.errors import CourseError
from grader.run.records import CollectedTest, records, refused

MARKERS = (
    "points(n): the points of a test of a problem",
    "inspection_only: a test that watches how code works; it can't judge what stops halfway",
)
"""The markers that tests of problems have."""

_OPTIONS = (
    "--collect-only",
    "--import-mode=importlib",
    "--assert=plain",
    "--capture=no",
    "--noconftest",
    "--override-ini=addopts=",
    "--override-ini=pythonpath=",
)

# They take time at the end of each run, or touch this process or the course's folder.
_UNUSED = ("unraisableexception", "threadexception", "faulthandler", "logging", "cacheprovider")

_LONGEST_REASON = 3000


def collect(problems: Iterable[Problem], root: Path) -> list[CollectedTest]:
    """Collect all tests of problems, visible and hidden, in the order of their files.

    The result depends only on the course: not on other courses in this process, the environment or
    installed plugins of pytest.

    Args:
        problems: whose tests.
        root: the course's folder.

    Raises:
        CourseError: a test file can't be run, has no test, or has one that is not plain.
        KeyboardInterrupt: the user ended it.
    """
    files = [str(problem.test_file) for problem in problems]
    found = _Collected()
    unused = [f"-pno:{name}" for name in _UNUSED]
    with modules_of_course(root), _no_other_plugins(), _printed() as printed:
        status = pytest.main([*_OPTIONS, *unused, "--rootdir", str(root), *files], [found])
    if found.interrupted:
        raise KeyboardInterrupt
    empty = sorted({*files} - {str(item.path) for item in found.items})
    reasons = found.errors or [f"no tests in {file}" for file in empty]
    if reasons or status is not pytest.ExitCode.OK:
        reasons = reasons or [printed.getvalue()[-_LONGEST_REASON:]]
        raise CourseError("pytest could not collect the course's tests:\n" + "\n".join(reasons))
    tests = records(found.items)
    _check_nothing_unasked(tests)
    return [*tests.values()]


def _check_nothing_unasked(tests: Mapping[pytest.Function, CollectedTest]) -> None:
    """Check that tests get no more than they ask for.

    Raises:
        CourseError: a file has a fixture for all of its tests, or a function such as setup_module.
    """
    for item, test in tests.items():
        for name in sorted({*item.fixturenames} - {*test.case, *test.fixtures}):
            raise refused(item, f"would get {name} without asking for it")


class _Collected:
    """A plugin that keeps what pytest collected, and why a file could not be collected."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.errors: list[str] = []
        self.interrupted = False

    def pytest_configure(self, config: pytest.Config) -> None:
        """Make the markers known."""
        for marker in MARKERS:
            config.addinivalue_line("markers", marker)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what went wrong."""
        if report.failed:
            self.errors.append(report.longreprtext[-_LONGEST_REASON:])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the tests."""
        self.items = session.items

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep that the user ended it; pytest itself does so, in its own ways, after an error."""
        self.interrupted |= type(excinfo.value) is KeyboardInterrupt

    def pytest_exception_interact(self, call: pytest.CallInfo[object]) -> None:
        """Keep that the user ended it; pytest 8.2 takes that for an error of a file."""
        self.interrupted |= call.excinfo is not None and call.excinfo.type is KeyboardInterrupt


@contextmanager
def _no_other_plugins() -> Iterator[None]:
    """Ignore installed plugins and pytest's environment variables in this context."""
    before = {name: value for name, value in os.environ.items() if name.startswith("PYTEST_")}
    for name in before:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        os.environ.update(before)


@contextmanager
def _printed() -> Iterator[io.StringIO]:
    """Capture printed text, for the message of an error."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        yield printed
