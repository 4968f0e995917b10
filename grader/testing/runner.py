"""Runs the course's tests through pytest, in this process, and hands back what they found."""

from __future__ import annotations

import ctypes
import io
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from _pytest.config import _prepareconfig

from grader.course import Problem
from grader.errors import CourseError
from grader.testing.plugin import (
    TIMEOUT_SECONDS,
    Collect,
    Session,
    problem_of,
    run_test,
    use_session,
)

_PLAIN = [
    "--override-ini=addopts=",
    "--import-mode=importlib",
    "--assert=plain",
    "--capture=no",
    "--hidden",
]

# Without plugins that collect garbage five times a run, watch each test's log, write files, or
# share out tests among processes.
_UNUSED = (
    "unraisableexception",
    "threadexception",
    "logging",
    "cacheprovider",
    "hypothesispytest",
    "xdist",
    "xdist.looponfail",
)
_QUICK = [f"-pno:{name}" for name in _UNUSED]


def run_tests(
    problems: Iterable[Problem],
    session: Session,
    root: Path,
    tests: Iterable[str] = (),
    *,
    timeout: float = TIMEOUT_SECONDS,
) -> None:
    """Run the tests of `problems` once; the session collects what they find.

    Args:
        problems: whose tests to run.
        session: whose files are tested, and where the results go.
        root: the course's folder.
        tests: ids of the tests to run, of each of the problems; by default all.
        timeout: seconds that one test may run.

    Raises:
        CourseError: a test file itself can't be run, or no test was found.
    """
    with Suite(problems, root, timeout=timeout) as suite:
        suite.run(session, tests=tests)


# Of the C library's malloc.h; and more than the tests' largest tensors take together.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 1 << 29


class Suite:
    """The tests of some problems, collected once, to be run as often as one likes.

    Collecting takes pytest about as long as running many of the tests.

    Args:
        problems: whose tests.
        root: the course's folder.
        timeout: seconds that one test may run.

    Raises:
        CourseError: a test file can't be run, or a problem has no test.
    """

    def __init__(
        self,
        problems: Iterable[Problem],
        root: Path,
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        _keep_memory()
        files = [str(problem.test_file) for problem in problems]
        errors = _CollectionErrors()
        with _quiet():
            # As pytest.main begins, but without an end. The workers of pytest-xdist start so too.
            arguments = [*_PLAIN, *_QUICK, "--rootdir", str(root), *files]
            self._config = _prepareconfig(arguments, [Collect(timeout), errors])
            self._config._do_configure()
            self._session: Any = pytest.Session.from_config(self._config)
            self._config.hook.pytest_sessionstart(session=self._session)
            self._config.hook.pytest_collection(session=self._session)
        _forget(files)
        self._items: list[pytest.Item] = self._session.items
        empty = {*files} - {str(item.path) for item in self._items}
        if errors.texts or empty:
            self.close()
            raise CourseError(
                "pytest could not run the course's tests:\n"
                + "\n".join(errors.texts or [f"no tests in {file}" for file in sorted(empty)])
            )
        self._own = [(tensor, tensor.clone()) for tensor in _tensors_of(self._items)]

    def __enter__(self) -> Suite:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let pytest go. Nothing can be run any more."""
        self._config._ensure_unconfigure()

    def run(
        self,
        session: Session,
        problems: Iterable[Problem] | None = None,
        tests: Iterable[str] = (),
    ) -> None:
        """Run tests; the session collects what they find.

        Args:
            session: whose files are tested, and where the results go.
            problems: whose tests to run; by default those of all that were collected.
            tests: ids or names of the tests to run, of each of the problems; by default all.

        Raises:
            CourseError: there is no such test.
            KeyboardInterrupt: the user ended it. The suite must not be used any more.
        """
        use_session(session, self._config)
        wanted = None if problems is None else {*problems}
        names = {*tests}
        items = [
            item
            for item in self._items
            if (wanted is None or problem_of(item) in wanted)
            and (not names or not names.isdisjoint((item.name, item.name.partition("[")[0])))
        ]
        if names and not items:
            raise CourseError(f"there is no test {' or '.join(sorted(names))}")
        chosen, _ = session.choose(items)
        with _quiet():
            for item in chosen:
                run_test(item)
            session.diagnose()
        for tensor, before in self._own:  # a submission may have changed the tests' own numbers
            tensor.data = before.clone()
        # Its reports of this run are of no more use, and would pile up.
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.stats.clear()


def _keep_memory() -> None:
    """Let the C library keep the memory of tensors that are gone for those that come.

    It would give large pieces back to the system and get them anew, page by page, which takes up to
    a sixth of the time that tests take. Other systems than Linux have other ways.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not every C library knows it
            mallopt = ctypes.CDLL(None).mallopt
            for threshold in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
                mallopt(threshold, _KEPT_BYTES)


class _CollectionErrors:
    """A plugin that keeps why a file could not be collected."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what went wrong."""
        if report.failed:
            self.texts.append(report.longreprtext[-3000:])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what pytest and the student's code print off the terminal."""
    nowhere = _Nowhere()
    with redirect_stdout(nowhere), redirect_stderr(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Nowhere(io.TextIOBase):
    """Where what is printed is lost."""

    def write(self, text: str) -> int:
        """Lose a text."""
        return len(text)


def _tensors_of(items: Iterable[pytest.Item]) -> list[torch.Tensor]:
    """Return the tensors that test modules hold."""
    modules = {id(item.module): item.module for item in items if isinstance(item, pytest.Function)}
    values = (value for module in modules.values() for value in vars(module).values())
    return [value for value in values if isinstance(value, torch.Tensor)]


def _forget(files: list[str]) -> None:
    """Make pytest import test files anew: it takes a module it knows for any file of that name."""
    known = [name for name, module in sys.modules.items() if _file_of(module) in files]
    for name in known:
        del sys.modules[name]


def _file_of(module: ModuleType) -> str | None:
    # By its dictionary: some modules import others when they are asked for a name.
    return getattr(module, "__dict__", {}).get("__file__")
