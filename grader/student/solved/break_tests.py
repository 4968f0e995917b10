"""Run a student's own tests on correct and wrong files of a problem, for `grader break`.

pytest runs the tests in a separate process. The process has a time limit for each file, because
wrong files and the student's tests may contain an endless loop.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import numpy
import pytest
import torch
from rich.console import Console
from rich.progress import track

from grader.code.loading import STUDENT_MODULE, load_module
from grader.code.quiet import quiet
from grader.course import OWN_TESTS, Course, Problem
from grader.diagnose.edits import mistakes_of
from grader.errors import UsageError

_SECONDS = 20.0
"""The time limit in seconds for all tests on one file."""

_SEED = 20

_OPTIONS = ["-x", "--import-mode=importlib", "-o", "addopts=", "-p", "no:cacheprovider"]
_OPTIONS += ["-p", "no:unraisableexception"]
"""pytest's options. `no:unraisableexception` disables a slow garbage collection after each run."""

_EXAMPLE = """\

def test_rows(problem):
    ...assert a property of the result
"""


@dataclass(frozen=True)
class Failure:
    """The first failure of a student's tests on a file.

    Attributes:
        message: the name of the failed test and pytest's message, or the reason why the test run
            stopped.
        is_over: whether the test run was stopped by a time limit or an exit. It is False if a test
            failed.
    """

    message: str
    is_over: bool = False


@dataclass(frozen=True)
class MistakeCaught:
    """A mistake, and how many of its forms a student's tests catch.

    Attributes:
        text: the description of the mistake.
        caught: the number of files with this mistake that the tests catch.
        forms: the number of all files with this mistake.
    """

    text: str
    caught: int
    forms: int

    def __str__(self) -> str:
        """Return the mistake's line in the report."""
        share = f" ({self.caught} of {self.forms} forms)" if self.forms > 1 else ""
        return f"- {self.text}{share}"


@dataclass(frozen=True)
class BreakReport:
    """The mistakes that a student's tests catch, and the correct files on which the tests fail.

    Attributes:
        right: the number of correct files.
        refused: maps the name of each correct file on which the tests fail to the first failure.
        mistakes: the mistakes, those with the most forms first. The list is empty if the test run
            stopped early on a correct file.
    """

    right: int
    refused: dict[str, Failure]
    mistakes: list[MistakeCaught]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        if self.refused:
            yield f"Your tests fail on {len(self.refused)} of {self.right} correct files:"
            yield from (f"- {name}: {each.message}" for name, each in self.refused.items())
        else:
            yield f"Your tests pass on all {self.right} correct files."
        caught = [each for each in self.mistakes if each.caught == each.forms]
        missed = [each for each in self.mistakes if each.caught < each.forms]
        if self.mistakes:
            yield f"Your tests catch {len(caught)} of {len(self.mistakes)} mistakes."
        for head, listed in (("Caught:", caught), ("Not caught:", missed)):
            yield from ("", head, *map(str, listed)) if listed else ()


def break_problem(
    course: Course, problem: Problem, console: Console, path: Path | None = None
) -> BreakReport:
    """Run a student's tests on the correct files of a problem, then on files with known mistakes.

    Args:
        course: the course with the solutions.
        problem: the problem.
        console: the console that shows the progress.
        path: the file with the tests; by default `test_mine.py` in the problem's folder.

    Raises:
        UsageError: the file with the tests is missing or can't be read.
    """
    path = path or problem.folder / OWN_TESTS
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist. Create it and write tests, for example\n\n{_EXAMPLE}"
        )
    right = {name: p.read_text("utf-8") for name, p in course.right_files(problem).items()}
    mistakes = mistakes_of(course, problem)
    refused: dict[str, Failure] = {}
    caught: dict[str, list[bool]] = {}
    with closing(_Child(path)) as child:
        for name, source in track(right.items(), "correct files", console=console, transient=True):
            if failure := child.run(source):
                refused[name] = failure
                if failure.is_over:  # the tests would probably stop on the next files too
                    return BreakReport(len(right), refused, [])
        for each in track(mistakes, "mistakes", console=console, transient=True):
            caught.setdefault(each.edit.when, []).append(child.run(each.source) is not None)
    caught_mistakes = [
        MistakeCaught(text, sum(forms), len(forms)) for text, forms in caught.items()
    ]
    return BreakReport(len(right), refused, sorted(caught_mistakes, key=lambda each: -each.forms))


# The process that runs the tests


class _Child:
    """A process that runs a student's tests on one file after the other."""

    def __init__(self, tests: Path) -> None:
        self._tests = tests
        self._folder = tempfile.TemporaryDirectory()
        self._numbers = itertools.count()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._tests, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._connection.recv()  # the process has loaded torch

    def run(self, source: str) -> Failure | None:
        """Run the tests on a file, and return the first failure, or None if all tests pass.

        Args:
            source: the content of the file.

        Raises:
            UsageError: the tests cannot be run.
        """
        # Each file has a new name, because Python caches the lines of a file by its name.
        path = Path(self._folder.name, f"problem_{next(self._numbers)}.py")
        path.write_text(source, encoding="utf-8")
        message = "the tests end their own process"
        with suppress(EOFError, OSError):
            self._connection.send(path)
            if self._connection.poll(_SECONDS):
                return self._read(self._connection.recv())
            message = "the tests do not end"
        self._end()
        self._start()
        return Failure(message, is_over=True)

    def _read(self, failure: Failure | str | None) -> Failure | None:
        if isinstance(failure, str):
            raise UsageError(f"{self._tests} cannot be run: {failure}.")
        return failure

    def _end(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def close(self) -> None:
        """End the process and remove the files that it tested."""
        self._end()
        self._folder.cleanup()


def _serve(tests: Path, connection: Connection) -> None:
    """Receive the paths of files. For each file, run the tests and send the first failure."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    torch.set_num_threads(1)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    connection.send(None)
    with suppress(EOFError, OSError):
        while True:
            connection.send(_first_failure(tests, connection.recv()))


def _first_failure(tests: Path, problem: Path) -> Failure | str | None:
    """Return the first failure of the tests on a file, or the reason why the tests cannot run."""
    plugin = _FileUnderTest(problem)
    with quiet():
        status = pytest.main([str(tests), *_OPTIONS], plugins=[plugin])
    if plugin.unreadable or status == pytest.ExitCode.NO_TESTS_COLLECTED:
        return plugin.unreadable or "it contains no test"
    if plugin.failure is None and status != pytest.ExitCode.OK:
        return Failure("the tests end the run", is_over=True)
    return plugin.failure


class _FileUnderTest:
    """A pytest plugin that loads the file under test, and stores the first failure."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.failure: Failure | None = None
        self.unreadable = ""

    @pytest.fixture(scope="session")
    def problem(self) -> ModuleType:
        """Load the file under test as a module."""
        return load_module(self._path, STUDENT_MODULE)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Store the reason why the tests cannot be collected."""
        if report.failed:
            self.unreadable = _errors(report)[-1]

    def pytest_runtest_setup(self) -> None:
        """Before each test, restore torch's default settings and set all random seeds."""
        random.seed(_SEED)
        numpy.random.seed(_SEED)
        torch.manual_seed(_SEED)
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store the first failure."""
        if report.failed and self.failure is None:
            name = report.nodeid.rpartition("::")[2]
            self.failure = Failure(f"{name} fails: {_errors(report)[0]}")


def _errors(report: pytest.CollectReport | pytest.TestReport) -> list[str]:
    """Return the lines of a report that pytest marks with "E"."""
    lines = report.longreprtext.splitlines()
    return [line[1:].strip() for line in lines if line.startswith("E")] or ["no reason is known"]
