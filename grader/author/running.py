"""Run the tests on the audit's candidates, several times if random numbers affect the result."""

from __future__ import annotations

import ast
import gc
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

import torch

from grader.author.candidates import OTHERS, USUAL, Candidate, CandidateKind, Conditions
from grader.author.weights import NotesNames, Weight, is_settled
from grader.code.quiet import quiet
from grader.course import SUBMISSION_FILE, Problem
from grader.diagnose.fingerprints import Text
from grader.diagnose.probe import Answers, ask_where
from grader.errors import CannotLoad, InternalError
from grader.grade.processes import Process, processes
from grader.result import ProblemResult, Status, TestResult
from grader.run.collecting import CollectedTest, ProblemTests
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

_FEW = 4
"""A mistake that was caught by at most this many cases runs again, since that may be chance."""

_GARBAGE = 10_000
"""The threshold of garbage collection in the audit's processes; Python's default is 700."""


@dataclass(frozen=True)
class CandidateOutcome:
    """The outcome of one candidate.

    Attributes:
        candidate: the candidate.
        result: the result under the candidate's conditions.
        answers: the candidate's answers to the problem's probe.
        unsteady: ids of tests with another status under other conditions.
        text: the texts for students about a mistake; None for other kinds.
        weight: the weight of a mistake; None for other kinds.
        asked: the names in the reference that each test uses, by the test's id; empty for other
            candidates.
        is_whole: whether all tests ran. The run of a mistake may stop earlier.
    """

    candidate: Candidate
    result: ProblemResult
    answers: dict[str, Answers]
    unsteady: tuple[str, ...]
    text: Text
    weight: Weight = Weight()
    asked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def caught_by(self) -> list[TestResult]:
        """The tests that didn't pass."""
        return _caught(self.result)

    @property
    def caught_visibly(self) -> bool:
        """Whether a visible test catches the candidate."""
        return any(not test.hidden for test in self.caught_by)

    @property
    def named(self) -> bool:
        """Whether the report names this mistake: by its diagnosis, or as a forbidden call."""
        by_rule = any(t.status is Status.FORBIDDEN for t in self.caught_by)
        return by_rule or any(self.candidate.name in t.diagnosis for t in self.caught_by)


@dataclass(frozen=True)
class ByReference:
    """Data on each test from the run of the reference; the keys are the ids of the tests.

    Attributes:
        seconds: how long the test took.
        asked: the names in the student's file that the test uses.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    asked: Mapping[str, frozenset[str]] = field(default_factory=dict)


@contextmanager
def several(jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a function like `map`. With several jobs, it uses other processes, which end with the
    context.
    """
    if jobs == 1:
        yield map
        return
    with processes(beside=False) as start:
        pool = _AuditPool([start(f"{__name__}:carry_out") for _ in range(jobs)])
        try:
            yield pool.map
        finally:
            pool.close()


class _AuditPool:
    """Processes that call functions, each with a thread that waits for its results."""

    def __init__(self, started: list[tuple[Process, Connection]]) -> None:
        self._started = started
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for _, connection in started:
            self._free.put(connection)
        self._threads = ThreadPoolExecutor(len(started))

    def map(self, function: Callable[..., Any], *each: Iterable[Any]) -> Iterator[Any]:
        """Call a function with the arguments at each position of the iterables, and yield the
        results in order.
        """
        futures = [self._threads.submit(self._call, function, *t) for t in zip(*each, strict=True)]
        return (future.result() for future in futures)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        connection = self._free.get()
        try:
            connection.send((function, arguments))
            is_value, result = connection.recv()
        except (EOFError, OSError):
            raise InternalError("one of the audit's processes has ended") from None
        self._free.put(connection)
        if not is_value:
            raise result
        return result

    def close(self) -> None:
        """Kill the processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process, _ in self._started:
            process.kill()
        self._threads.shutdown()
        for _, connection in self._started:
            connection.close()


def carry_out(connection: Connection, _: None) -> None:
    """Call the functions that are received on a connection until it is closed. Runs in the pool."""
    # Run the garbage collector less often, and exclude loaded modules.
    gc.freeze()
    gc.set_threshold(_GARBAGE, 10, 10)
    with suppress(EOFError, BrokenPipeError):
        while True:
            function, arguments = connection.recv()
            try:
                answer = True, function(*arguments)
            except Exception as error:
                answer = False, error
            connection.send(answer)


@torch.enable_grad()  # an earlier candidate may have disabled gradients
def run(
    candidate: Candidate,
    answers: dict[str, Answers] | None = None,
    first: str = "",
    known: ByReference = ByReference(),  # noqa: B008  (it can't be changed)
    *,
    root: Path,
    all_tests: bool = True,
) -> CandidateOutcome:
    """Run one candidate.

    Args:
        candidate: the candidate.
        answers: the answers to the problem's probe, if they are known.
        first: the id of the first test to run, because it caught this mistake earlier; or empty.
        known: the data on each test from the reference's run.
        root: the course's folder.
        all_tests: whether a mistake runs through all tests even after its weight is confirmed.
    """
    # The guard doubles the time of a run. Mistakes call forbidden functions only by name, so the
    # guard is needed only for a mistake that contains such a name. The reference must pass all
    # tests with the guard, and variants must answer the probe with it.
    tests = _suite(candidate.problem, root).tests_of(candidate.problem)
    is_mistake = candidate.kind is CandidateKind.MISTAKE
    forbidden = is_mistake and _names_forbidden(candidate)
    watch = forbidden or not is_mistake
    torch.set_num_threads(1)  # an earlier candidate may have changed it
    if answers is None:
        answers = _probe_answers(candidate, tests, watch=watch)
    watch = forbidden or candidate.kind is CandidateKind.SOLUTION
    edit = candidate.edit
    text = Text("", "") if edit is None else Text(edit.when, edit.look)
    weight = Weight.read("" if edit is None else edit.weight)
    if is_mistake and not all_tests:
        result, is_whole = _run_until_settled(candidate, root, weight, first, known, watch=watch)
    else:
        result, is_whole = _run_once(candidate, candidate.conditions, root, watch=watch), True
    unsteady: set[str] = set()
    for conditions in _more_conditions(candidate, result):
        if candidate.kind is CandidateKind.MISTAKE:
            unsteady |= _missed_by_chance(candidate, result, conditions, root, watch=forbidden)
        else:
            again = _run_once(candidate, conditions, root, watch=forbidden)
            unsteady |= _differences(result, again)
    asked = _names_asked(candidate, root) if candidate.kind is CandidateKind.SOLUTION else {}
    unsteadily = tuple(sorted(unsteady))
    return CandidateOutcome(candidate, result, answers, unsteadily, text, weight, asked, is_whole)


@torch.enable_grad()
def run_these(candidate: Candidate, tests: Iterable[str], *, root: Path) -> list[TestResult]:
    """Run only these tests on a mistake, and return their results."""
    watch = _names_forbidden(candidate)
    return _run_once(candidate, candidate.conditions, root, watch=watch, tests=tests).tests


def _run_until_settled(
    mistake: Candidate,
    root: Path,
    weight: Weight,
    first: str,
    known: ByReference,
    *,
    watch: bool,
) -> tuple[ProblemResult, bool]:
    """Run tests on a mistake until its weight is confirmed. Return the results, and whether all
    tests ran.

    The test that caught the mistake in an earlier audit runs first. If the weight depends on
    points, tests with many points per second follow. Otherwise tests follow that recently caught
    similar mistakes. If no such test is known, hidden tests run last, because the summary counts
    the mistakes that visible tests catch.

    Args:
        mistake: the mistake.
        root: the course's folder.
        weight: the weight of the mistake.
        first: the id of the first test to run; or empty.
        known: the data on each test from the reference's run.
        watch: whether to detect forbidden calls.
    """
    every = _suite(mistake.problem, root).tests
    alone = frozenset({weight.function})
    counts = {t.id: t.points for t in every if not weight.function or known.asked[t.id] == alone}
    most = sum(counts.values())
    lately = _CAUGHT.setdefault(mistake.problem.id, {})

    def order(test: CollectedTest) -> tuple[float, ...]:
        took = known.seconds.get(test.id, 0.0)
        cost = took / test.points if counts.get(test.id) else math.inf
        is_late = test.hidden and not (first and weight.kind)
        return (test.id != first, is_late, cost if weight.kind else -lately.get(test.id, 0))

    def enough(result: ProblemResult) -> bool:
        counted = [test for test in result.tests if test.id in counts]
        return is_settled(weight, replace(result, tests=counted), most)

    result = _run_once(mistake, mistake.conditions, root, watch=watch, order=order, enough=enough)
    lately |= dict.fromkeys((t.id for t in _caught(result)), 1 + max(lately.values(), default=0))
    return result, len(result.tests) == len(every)


_CAUGHT: dict[str, dict[str, int]] = {}
"""For each problem id, the tests that caught mistakes. A larger number means a later catch."""


def _run_once(
    candidate: Candidate,
    conditions: Conditions,
    root: Path,
    *,
    watch: bool,
    tests: Iterable[str] = (),
    order: Callable[[CollectedTest], tuple[float, ...]] | None = None,
    enough: Callable[[ProblemResult], bool] = lambda result: False,
) -> ProblemResult:
    id = candidate.problem.id
    with _as_file(candidate) as opener:
        session = Session(
            opener,
            hidden=True,
            seed=conditions.seed,
            reverse=conditions.reverse,
            watch=watch,
            diagnose=False,
        )
        _suite(candidate.problem, root).run(
            session,
            tests=tests,
            order=order,
            enough=lambda: id in session.results and enough(session.results[id]),
        )
    return session.results[id]


def _names_asked(candidate: Candidate, root: Path) -> dict[str, frozenset[str]]:
    """Return the names in a candidate's file that each test uses, by the test's id."""
    with _as_file(candidate) as files:
        notes = NotesNames(files)
        session = Session(notes, hidden=True, on_start=notes.begin, watch=False, diagnose=False)
        _suite(candidate.problem, root).run(session)
    return notes.asked


@contextmanager
def _as_file(candidate: Candidate) -> Iterator[LocalFiles]:
    """Yield a temporary file with the candidate's code, because a mistake has no file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / SUBMISSION_FILE
        path.write_bytes(candidate.source)
        yield LocalFiles(lambda _: path)


@cache
def _suite(problem: Problem, root: Path) -> Suite:
    """Return a problem's tests. Each process collects them once."""
    return Suite([problem], root)


def _names_forbidden(candidate: Candidate) -> bool:
    forbidden = {name for names in candidate.problem.entry.all_forbidden() for name in names}
    names = [_folded(name) for name in forbidden]  # nn.LogSoftmax calls log_softmax
    whole = _folded(candidate.source.decode())
    if not any(name in whole for name in names):
        return False
    code = _folded(_without_docstrings(candidate.source))  # docstrings may contain such a name
    # As an attribute, in an import, or as a string for getattr.
    return bool(re.search(rf"(\.|import .*|['\"])({'|'.join(names)})\b", code))


def _without_docstrings(source: bytes) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _folded(text: str) -> str:
    return text.replace("_", "").lower()


def _probe_answers(candidate: Candidate, tests: ProblemTests, *, watch: bool) -> dict[str, Answers]:
    # Mistakes may print text, cause warnings of torch, and leave gradients disabled.
    with quiet(), torch.enable_grad(), _as_file(candidate) as opener:
        if tests.probe is None:
            return {}
        open_code = partial(opener, candidate.problem)
        try:
            return ask_where(tests.probe, candidate.problem.entry, open_code, watch=watch)
        except CannotLoad:
            return {}


def _more_conditions(candidate: Candidate, result: ProblemResult) -> tuple[Conditions, ...]:
    """Return the additional conditions under which a candidate runs. There are more of them if
    random numbers affect the tests.
    """
    match candidate.kind:
        case CandidateKind.SOLUTION:
            return OTHERS
        case CandidateKind.VARIANT if not result.passed:  # by chance?
            return (USUAL,)
        case CandidateKind.MISTAKE if 0 < len(_caught(result)) <= _FEW:
            return OTHERS[-1:]
        case _:
            return ()


def _caught(result: ProblemResult) -> list[TestResult]:
    return [test for test in result.tests if test.status is not Status.PASSED]


def _differences(usual: ProblemResult, again: ProblemResult) -> set[str]:
    """Return the ids of the tests that have different statuses in the two results."""
    before = {test.id: test.status for test in usual.tests}
    return {test.id for test in again.tests if before[test.id] is not test.status}


def _missed_by_chance(
    candidate: Candidate, usual: ProblemResult, conditions: Conditions, root: Path, *, watch: bool
) -> set[str]:
    """Return a message if a mistake passes all tests under these conditions, otherwise an empty
    set. The tests that caught the mistake before run first.
    """
    for tests in ([test.id for test in _caught(usual)], ()):
        again = _run_once(
            candidate, conditions, root, watch=watch, tests=tests, enough=lambda r: not r.passed
        )
        if not again.passed:
            return set()
    return {"all tests pass under other conditions"}
