"""Create orders in the trusted process, and carry out orders in a worker.

An order is a message that requests a run of tests or of a problem's probe. The visible tests, the
hidden tests and the probe run in separate workers. A worker has no salt, so an order to run tests
contains the seeds. The worker of a probe has no tests and no reference, only files that students
also have. No mark depends on the answers to a probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from grader.code.course_modules import modules_used
from grader.code.loading import judge_load
from grader.course import MANIFEST, SUBMISSION_FILE, Problem
from grader.diagnose.answers import Answer
from grader.diagnose.probe import Answers, answers_of, load_probe, owner
from grader.errors import CannotLoad
from grader.result import Status
from grader.run.collecting import CollectedTest, collect
from grader.run.encoding import BadRecord, Encoder
from grader.run.judging import Expectation, answer
from grader.run.runner import Seeds, seeds_for
from grader.run.session import OpenModule, Session
from grader.run.unknown import ORACLES, UNKNOWN, without_oracles
from grader.text import plain

_MOST_TEXT = 4000
_MOST_NAME = 100
_MOST_BYTES = 1 << 20
"""The maximum number of bytes of the answers to a probe."""

_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[+-]\d{2,3})?|inf|nan)"
_VALUE = rf"\w{{1,20}} (?:scalar|\d{{1,19}}(?:x\d{{1,19}}){{0,63}}) \d{{1,4}}(?: {_NUMBER}){{4}}"
_INSTEAD = r"!(?:returned-)?[\w-]{1,100}"

_AnswerText = Annotated[str, Meta(max_length=2000, pattern=rf"\A(?:{_INSTEAD}|{_VALUE})\Z")]
"""The text of an answer, in the format of `Answer.write`."""

_AnswerTexts = dict[str, _AnswerText]

_HOSTILE = "Your code raised an exception that cannot be read."


# The trusted process


class LoadReport(msgspec.Struct, forbid_unknown_fields=True):
    """A worker's first message: the result of loading the student's file.

    Attributes:
        status: the status of a file that can't be used; None if the file can be used.
        text: the message for the student about this status.
        attempts: the kind and name of each forbidden action that the file tried while it ran.
    """

    status: Status | None = None
    text: Annotated[str, Meta(max_length=_MOST_TEXT)] = ""
    attempts: Annotated[
        list[tuple[str, Annotated[str, Meta(max_length=_MOST_NAME)]]], Meta(max_length=5)
    ] = []

    @classmethod
    def read(cls, message: bytes) -> LoadReport:
        """Return the report in a message, which student code may have written.

        Raises:
            BadRecord: the message is invalid.
        """
        try:
            return msgspec.json.decode(message, type=cls)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise BadRecord("the message cannot be read") from error

    def cannot_load(self) -> CannotLoad | None:
        """Return the exception about a file that can't be used; None if the file can be used."""
        if self.status in (None, Status.PASSED, Status.INTERNAL):
            return None
        return CannotLoad(self.status, plain(self.text))


def order(tests: Iterable[tuple[CollectedTest, Expectation]], seed: int) -> bytes:
    """Return an order to run tests.

    Args:
        tests: the tests with their expectations, in order.
        seed: the seed of the run.
    """
    steps = []
    for test, expected in tests:
        seeds = seeds_for(test, seed)
        steps.append((test.id, seeds.state, seeds.rng, expected.inputs))
    return msgspec.msgpack.encode(steps)


def files_of_half(problem: Problem, *, hidden: bool) -> dict[str, bytes]:
    """Return the files that a worker needs to run a problem's tests, without the oracles.

    Args:
        problem: the problem.
        hidden: whether to include the hidden tests.

    Returns:
        The contents of the files, by path in the course's folder.
    """
    text = problem.test_file.read_text(encoding="utf-8")
    first = problem.first_hidden_line()
    if not hidden and first is not None:
        text = "\n".join(text.splitlines()[: first - 1])
    files = {problem.test_file: text.encode(), problem.stub: problem.original.read_bytes()}
    return _files(problem, files, without=ORACLES)


def files_of_probe(problem: Problem) -> dict[str, bytes]:
    """Return the contents of the files that a worker needs to run a problem's probe, by path."""
    return _files(problem, {problem.probe_file: problem.probe_file.read_bytes()})


def _files(problem: Problem, sources: dict[Path, bytes], without: str = "") -> dict[str, bytes]:
    """Return the contents of source files and of all files that the sources need, by path.

    Omit the modules of the package that `without` names.
    """
    root, problems = problem.folder.parents[1], problem.folder.parent
    used = modules_used(sources.values(), problems, without=without)
    data = [path for path in (problems / "shared").glob("*.*") if path.suffix != ".py"]
    paths = {*used, *data, *problems.glob("*/__init__.py"), root / MANIFEST}
    contents = {path: path.read_bytes() for path in paths} | sources
    return {str(path.relative_to(root)): content for path, content in contents.items()}


def probe_order(forbidden: tuple[str, ...]) -> bytes:
    """Return an order to run a problem's probe on some of the student's functions and classes.

    Args:
        forbidden: the names of library functions. The probe is run on all functions and classes
            in which the problem forbids exactly these library functions.
    """
    return msgspec.json.encode(forbidden)


def read_answers(message: bytes) -> dict[str, Answers]:
    """Read the answers to a probe, by part, in a message that student code may have written.

    Raises:
        BadRecord: the message is invalid or too large.
    """
    if len(message) > _MOST_BYTES:
        raise BadRecord("the message is too large")
    try:
        texts = msgspec.json.decode(message, type=dict[str, tuple[_AnswerTexts, _AnswerTexts]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadRecord("the message cannot be read") from error
    return {part: Answers(_read(main), _read(edges)) for part, (main, edges) in texts.items()}


def known_only(
    answers: Mapping[str, Answers], reference: Mapping[str, Answers]
) -> dict[str, Answers]:
    """Return `answers` without the questions that are not in `reference`."""
    nothing = Answers({}, {})
    return {
        part: Answers(
            {name: of_part.main[name] for name in right.main if name in of_part.main},
            {name: of_part.edges[name] for name in right.edges if name in of_part.edges},
        )
        for part, right in reference.items()
        for of_part in [answers.get(part, nothing)]
    }


def _read(texts: Mapping[str, str]) -> dict[str, Answer]:
    return {name: Answer.read(text) for name, text in texts.items()}


# The worker


def load_tests(folder: str) -> Callable[[bytes, Any], Iterator[bytes]]:
    """Load the tests of one half from a folder, and return a function that carries out an order.

    The returned function yields a load report, and then a message for each test in the order.
    """
    (path,) = Path(folder).glob("problems/*/test_*.py")
    with without_oracles():
        tests = collect([Problem(path.parent)], Path(folder))
    tests[0].tests.__dict__["solution"] = UNKNOWN
    for test in tests:  # read all files before student code runs
        _ = test.forbidden, test.tests.values
    by_id = {test.id: test for test in tests}

    def run_tests(order: bytes, loaded: Any) -> Iterator[bytes]:
        yield report(loaded)
        session = Session(OpenModule(loaded.module), hidden=True, diagnose=False)
        for id, state, rng, inputs in msgspec.msgpack.decode(order):
            seeds = Seeds(state, rng)
            yield _message(by_id[id], session, inputs, seeds, loaded)

    return run_tests


def report(loaded: Any) -> bytes:
    """Return a worker's first message, the load report.

    Args:
        loaded: the worker's `LoadedSource` of the student's file.
    """
    message = LoadReport(attempts=loaded.attempts)
    if loaded.error is not None:
        try:
            cannot_load = judge_load(loaded.error, Path(SUBMISSION_FILE))
            message.status, message.text = cannot_load.status, str(cannot_load)[:_MOST_TEXT]
        except BaseException:  # raised by methods of the student's exception
            message.status, message.text = Status.ERROR, _HOSTILE
    return msgspec.json.encode(message)


def _message(
    test: CollectedTest, session: Session, inputs: bytes, seeds: Seeds, loaded: Any
) -> bytes:
    try:
        return answer(test, session, inputs, seeds, loaded.called, loaded.printed)
    except BaseException:  # raised by methods of the student's exception or result
        return Encoder().message([test.id, [], Status.ERROR.value, _HOSTILE])


def load_questions(folder: str) -> Callable[[bytes, Any], Iterator[bytes]]:
    """Load a probe from a folder, and return a function that carries out an order.

    The returned function yields a load report, and then a message with all answers to the probe.
    """
    (path,) = Path(folder).glob("problems/*/probe.py")
    problem = Problem(path.parent)
    probe, entry = load_probe(problem), problem.entry
    assert probe is not None

    def ask(order: bytes, loaded: Any) -> Iterator[bytes]:
        yield report(loaded)
        forbidden = tuple(msgspec.json.decode(order))
        try:
            answers = answers_of(
                probe,
                loaded.module,
                lambda part: entry.forbidden_where({owner(part)}) == forbidden,
            )
            message = msgspec.json.encode({part: _written(each) for part, each in answers.items()})
        except BaseException:  # raised by student code
            message = b"{}"
        yield message

    return ask


def _written(answers: Answers) -> list[dict[str, str]]:
    return [{q: a.write() for q, a in each.items()} for each in (answers.main, answers.edges)]
