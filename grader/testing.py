"""Runs the course's tests through pytest, in this process, and hands back what they found."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest

from grader.course import CourseError, Problem
from grader.plugin import Session, UseSession

_PLAIN = ["--override-ini=addopts=", "--import-mode=importlib", "--assert=plain"]

# Without plugins that collect garbage five times a run, watch each test's log or write files.
_UNUSED = ("unraisableexception", "threadexception", "logging", "cacheprovider", "hypothesispytest")
_QUICK = [f"-pno:{name}" for name in _UNUSED]


def run_tests(
    problems: Iterable[Problem],
    session: Session,
    root: Path,
    tests: Iterable[str] = (),
    *,
    plugins: Sequence[object] = (),
) -> None:
    """Run the tests of `problems`; the session collects what they find.

    Args:
        problems: whose tests to run.
        session: whose files are tested, and where the results go.
        root: the course's folder.
        tests: ids of the tests to run, of each of the problems; by default all.
        plugins: pytest plugins that look on.

    Raises:
        CourseError: a test file itself can't be run, or no test was found.
        KeyboardInterrupt: the user ended it.
    """
    files = [str(problem.test_file) for problem in problems]
    chosen = [f"{file}::{test}" for test in tests for file in files] or files
    arguments = [*_PLAIN, *_QUICK, "--rootdir", str(root), *chosen]
    ended = _EndedByUser()
    with redirect_stdout(io.StringIO()) as printed:
        status = pytest.main(arguments, plugins=[UseSession(session), ended, *plugins])
    _forget(files)
    if ended.seen:
        raise KeyboardInterrupt
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise CourseError(f"pytest could not run the course's tests:\n{printed.getvalue()[-3000:]}")


class _EndedByUser:
    """A plugin that notices Ctrl-C, of which pytest makes the same status as of a broken file."""

    seen = False

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.seen = excinfo.type is KeyboardInterrupt  # that of a broken file is a subclass


def _forget(files: list[str]) -> None:
    """Make pytest import test files anew: it takes a module it knows for any file of that name."""
    known = [name for name, module in sys.modules.items() if _file_of(module) in files]
    for name in known:
        del sys.modules[name]


def _file_of(module: ModuleType) -> str | None:
    # By its dictionary: some modules import others when they are asked for a name.
    return getattr(module, "__dict__", {}).get("__file__")
