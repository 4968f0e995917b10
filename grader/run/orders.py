"""Write orders of tests in the trusted process, and run them in a worker.

A worker has one half of a problem's tests. It has no salt, so an order contains the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from grader.code.course_modules import modules_used
from grader.code.loading import judge_load
from grader.course import MANIFEST, SUBMISSION_FILE, Problem
from grader.errors import CannotLoad
from grader.result import Status
from grader.run.collecting import collect
from grader.run.encoding import BadRecord, Encoder
from grader.run.judging import Expectation, answer
from grader.run.records import CollectedTest
from grader.run.runner import Seeds, seeds_for
from grader.run.session import Session
from grader.run.unknown import ORACLES, UNKNOWN, without_oracles
from grader.text import plain

_MOST_TEXT = 4000
_MOST_NAME = 100


# The trusted process


class LoadReport(msgspec.Struct, forbid_unknown_fields=True):
    """A worker's first message: how loading the student's file ended.

    Attributes:
        status: why it can't be used; None if it can.
        text: the message to the student about that.
        attempts: the kind and name of each forbidden action that the file tried meanwhile.
    """

    status: Status | None = None
    text: Annotated[str, Meta(max_length=_MOST_TEXT)] = ""
    attempts: Annotated[
        list[tuple[str, Annotated[str, Meta(max_length=_MOST_NAME)]]], Meta(max_length=5)
    ] = []

    @classmethod
    def read(cls, message: bytes) -> LoadReport:
        """Read a message that student code may have written.

        Raises:
            BadRecord: the message is invalid.
        """
        try:
            return msgspec.json.decode(message, type=cls)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise BadRecord("it cannot be read") from error

    def cannot_load(self) -> CannotLoad | None:
        """Return why the file can't be used, or None."""
        if self.status in (None, Status.PASSED, Status.INTERNAL):
            return None
        return CannotLoad(self.status, plain(self.text))


def order(tests: Iterable[tuple[CollectedTest, Expectation]], seed: int) -> bytes:
    """Return an order to run these tests in a run with this seed."""
    steps = []
    for test, expected in tests:
        seeds = seeds_for(test, seed)
        steps.append((test.id, seeds.state, seeds.rng, expected.inputs))
    return msgspec.msgpack.encode(steps)


def files_of_half(problem: Problem, *, hidden: bool) -> dict[str, bytes]:
    """Return the files of a problem's tests that a worker needs, without any oracle.

    Args:
        problem: the problem.
        hidden: whether to include the hidden tests.

    Returns:
        The files of a course with one problem, by their paths.
    """
    root = problem.folder.parents[1]
    text = problem.test_file.read_text(encoding="utf-8")
    first = problem.first_hidden_line()
    if not hidden and first is not None:
        text = "\n".join(text.splitlines()[: first - 1])
    problems = problem.folder.parent
    used = modules_used([text.encode()], problems, without=ORACLES)
    paths = {*used, *data_of(problems), *problems.glob("*/__init__.py"), root / MANIFEST}
    found = {str(path.relative_to(root)): path.read_bytes() for path in paths}
    found[str(problem.stub.relative_to(root))] = problem.original.read_bytes()
    return found | {str(problem.test_file.relative_to(root)): text.encode()}


def data_of(problems: Path) -> list[Path]:
    """Return the data files that a course's problems share."""
    return [path for path in (problems / "shared").glob("*.*") if path.suffix != ".py"]


# The worker


def load(folder: str) -> Callable[[bytes, Any], Iterator[bytes]]:
    """Load the tests of a half from a folder, and return a function that runs an order of them."""
    (path,) = Path(folder).glob("problems/*/test_*.py")
    with without_oracles():
        tests = collect([Problem(path.parent)], Path(folder))
    tests[0].tests.__dict__["solution"] = UNKNOWN
    for test in tests:  # read their files now
        _ = test.forbidden, test.tests.values
    by_id = {test.id: test for test in tests}

    def run_tests(order: bytes, loaded: Any) -> Iterator[bytes]:
        yield report(loaded)
        session = Session(_ModuleOpener(loaded.module), hidden=True, diagnose=False)
        for id, state, rng, inputs in msgspec.msgpack.decode(order):
            seeds = Seeds(state, rng)
            yield _message(by_id[id], session, inputs, seeds, loaded)

    return run_tests


class _ModuleOpener:
    """Returns the student's module."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> ModuleType:
        """Return it."""
        return self._module

    def forget(self, problem: Problem) -> None:
        """Do nothing, as a worker loads the file only once."""


def report(loaded: Any) -> bytes:
    """Return a worker's first message."""
    found = LoadReport(attempts=loaded.attempts)
    if loaded.error is not None:
        try:
            cannot_load = judge_load(loaded.error, Path(SUBMISSION_FILE))
            found.status, found.text = cannot_load.status, str(cannot_load)[:_MOST_TEXT]
        except BaseException:  # raised by the exception's methods
            found.status, found.text = Status.ERROR, _HOSTILE
    return msgspec.json.encode(found)


def _message(
    test: CollectedTest, session: Session, inputs: bytes, seeds: Seeds, loaded: Any
) -> bytes:
    try:
        return answer(test, session, inputs, seeds, loaded.called, loaded.printed)
    except BaseException:  # raised by methods of the student's exception or result
        return Encoder().message([test.id, [], Status.ERROR.value, _HOSTILE])


_HOSTILE = "Your code raised an exception that cannot be read."
