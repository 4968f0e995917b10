"""Run the tests on the candidates of an audit, and repeat some runs with other random numbers."""

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
from grader.author.weights import NameRecorder, Weight, is_settled
from grader.code.quiet import quiet
from grader.course import SUBMISSION_FILE, Problem
from grader.diagnose.fingerprints import Text
from grader.diagnose.probe import Answers, ask_with_guard
from grader.errors import CannotLoad, InternalError
from grader.grade.processes import Process, processes
from grader.result import ProblemResult, Status, TestResult
from grader.run.collecting import CollectedTest, ProblemTests
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

_FEW = 4
"""If at most this many tests catch a mistake, the tests run on it again under other conditions.

They could have caught the mistake by chance. A parametrized test function counts as several tests.
"""

_GARBAGE = 10_000
"""The garbage collection threshold in the audit's processes. Python's default is 700."""


@dataclass(frozen=True)
class CandidateOutcome:
    """The outcome of one candidate.

    Attributes:
        candidate: the candidate.
        result: the result under the candidate's conditions.
        answers: the candidate's answers to the problem's probe.
        unsteady: the ids of tests whose status depends on the conditions. For a mistake, it instead
            contains one message if all tests pass under other conditions.
        text: the texts for students about a mistake; empty for other kinds.
        weight: the weight of a mistake; empty for other kinds.
        uses: for the reference, maps each test id to the functions and classes that the test uses;
            empty for other candidates.
        is_whole: whether all tests ran. The run of a mistake can end earlier.
    """

    candidate: Candidate
    result: ProblemResult
    answers: dict[str, Answers]
    unsteady: tuple[str, ...]
    text: Text
    weight: Weight = Weight()
    uses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def caught_by(self) -> list[TestResult]:
        """The tests that didn't pass."""
        return _caught(self.result)

    @property
    def caught_visibly(self) -> bool:
        """Whether at least one visible test didn't pass."""
        return any(not test.hidden for test in self.caught_by)

    @property
    def named(self) -> bool:
        """Whether a student's report would name this mistake or a forbidden call."""
        by_rule = any(t.status is Status.FORBIDDEN for t in self.caught_by)
        return by_rule or any(self.candidate.name in t.diagnosis for t in self.caught_by)


@dataclass(frozen=True)
class ByReference:
    """Data about each test from the run of the reference solution.

    Attributes:
        seconds: for each test id, the run time of the test.
        uses: for each test id, the functions and classes that the test uses.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    uses: Mapping[str, frozenset[str]] = field(default_factory=dict)


@contextmanager
def several(jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a function like `map` that makes up to `jobs` calls at the same time.

    If `jobs` is more than 1, other processes make the calls. They end when the `with` block ends.
    """
    if jobs == 1:
        yield map
        return
    with processes(with_prefork_server=False) as start:
        pool = _AuditPool([start(f"{__name__}:serve_calls") for _ in range(jobs)])
        try:
            yield pool.map
        finally:
            pool.close()


class _AuditPool:
    """A pool of processes that call functions."""

    def __init__(self, started: list[tuple[Process, Connection]]) -> None:
        self._started = started
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for _, connection in started:
            self._free.put(connection)
        self._threads = ThreadPoolExecutor(len(started))

    def map(self, function: Callable[..., Any], *each: Iterable[Any]) -> Iterator[Any]:
        """Call a function like `map`, but make several calls at the same time.

        The results are in the order of the arguments.
        """
        futures = [self._threads.submit(self._call, function, *t) for t in zip(*each, strict=True)]
        return (future.result() for future in futures)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        connection = self._free.get()
        try:
            connection.send((function, arguments))
            is_value, result = connection.recv()
        except (EOFError, OSError):
            raise InternalError("a process of the audit ended unexpectedly") from None
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


def serve_calls(connection: Connection, _: None) -> None:
    """In a process of the pool, receive functions with arguments, and send back the results."""
    # To save time, collect garbage less often, and exclude the loaded modules.
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
    known: ByReference = ByReference(),  # noqa: B008  (the default is immutable)
    *,
    root: Path,
    all_tests: bool = True,
) -> CandidateOutcome:
    """Run the probe and the tests on one candidate.

    Args:
        candidate: the candidate.
        answers: the valid answers to the problem's probe; None if the candidate must be probed.
        first: the id of the test that caught this mistake in an earlier audit, or "". Run it first.
        known: the data about each test from the reference's run.
        root: the course's folder.
        all_tests: whether all tests are run on a mistake even after its weight is confirmed.
    """
    # The guard, which detects forbidden calls, doubles the time of a run. A mistake needs the guard
    # only if its code contains the name of a forbidden function. The guard is also used when tests
    # run on the reference and when variants are probed.
    tests = _suite(candidate.problem, root).tests_of(candidate.problem)
    is_mistake = candidate.kind is CandidateKind.MISTAKE
    forbidden = is_mistake and _names_forbidden(candidate)
    watch = forbidden or not is_mistake
    torch.set_num_threads(1)  # an earlier candidate may have changed the number
    if answers is None:
        answers = _probe_answers(candidate, tests, watch=watch)
    watch = forbidden or candidate.kind is CandidateKind.SOLUTION
    edit = candidate.edit
    text = Text("", "") if edit is None else Text(edit.when, edit.nudge)
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
    uses = _names_used(candidate, root) if candidate.kind is CandidateKind.SOLUTION else {}
    unsteadily = tuple(sorted(unsteady))
    return CandidateOutcome(candidate, result, answers, unsteadily, text, weight, uses, is_whole)


@torch.enable_grad()
def run_these(candidate: Candidate, tests: Iterable[str], *, root: Path) -> list[TestResult]:
    """Run some tests on a mistake, and return their results.

    Args:
        candidate: the mistake.
        tests: the names or ids of the tests to run.
        root: the course's folder.
    """
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
    """Run tests on a mistake until its weight is confirmed.

    Return the results, and whether all tests ran.

    The test `first` is run first. If the weight depends on points, tests with many points per
    second follow. Otherwise, tests that recently caught other mistakes follow. Hidden tests usually
    run last, because the summary counts the mistakes that visible tests catch.

    Args:
        mistake: the mistake.
        root: the course's folder.
        weight: the weight of the mistake.
        first: the id of the test that caught the mistake in an earlier audit, or "".
        known: the data about each test from the reference's run.
        watch: whether to detect forbidden calls.
    """
    every = _suite(mistake.problem, root).tests
    alone = frozenset({weight.function})
    counts = {t.id: t.points for t in every if not weight.function or known.uses[t.id] == alone}
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
"""For each problem id, maps the ids of tests that caught mistakes in this process to numbers.

A test with a larger number caught a mistake more recently.
"""


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


def _names_used(candidate: Candidate, root: Path) -> dict[str, frozenset[str]]:
    """Return for each test id the functions and classes of a candidate that the test uses."""
    with _as_file(candidate) as files:
        notes = NameRecorder(files)
        session = Session(notes, hidden=True, on_start=notes.begin, watch=False, diagnose=False)
        _suite(candidate.problem, root).run(session)
    return notes.uses


@contextmanager
def _as_file(candidate: Candidate) -> Iterator[LocalFiles]:
    """Write the candidate's code to a temporary file, and yield a loader of this file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / SUBMISSION_FILE
        path.write_bytes(candidate.source)
        yield LocalFiles(lambda _: path)


@cache
def _suite(problem: Problem, root: Path) -> Suite:
    """Collect a problem's tests, once in each process."""
    return Suite([problem], root)


def _names_forbidden(candidate: Candidate) -> bool:
    forbidden = {name for names in candidate.problem.entry.all_forbidden() for name in names}
    names = [_normalized(name) for name in forbidden]  # nn.LogSoftmax calls log_softmax
    whole = _normalized(candidate.source.decode())
    if not any(name in whole for name in names):
        return False
    code = _normalized(_without_docstrings(candidate.source))  # names in docstrings do not count
    # Find the name of an attribute, a name in an import, or a string for getattr.
    return bool(re.search(rf"(\.|import .*|['\"])({'|'.join(names)})\b", code))


def _without_docstrings(source: bytes) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _normalized(text: str) -> str:
    return text.replace("_", "").lower()


def _probe_answers(candidate: Candidate, tests: ProblemTests, *, watch: bool) -> dict[str, Answers]:
    # A mistake may print text, cause warnings, or disable gradients.
    with quiet(), torch.enable_grad(), _as_file(candidate) as opener:
        if tests.probe is None:
            return {}
        open_code = partial(opener, candidate.problem)
        try:
            return ask_with_guard(tests.probe, candidate.problem.entry, open_code, watch=watch)
        except CannotLoad:
            return {}


def _more_conditions(candidate: Candidate, result: ProblemResult) -> tuple[Conditions, ...]:
    """Return the additional conditions under which the tests are run on a candidate."""
    match candidate.kind:
        case CandidateKind.SOLUTION:
            return OTHERS
        case CandidateKind.VARIANT if not result.passed:  # the variant may have failed by chance
            return (USUAL,)
        case CandidateKind.MISTAKE if 0 < len(_caught(result)) <= _FEW:
            return OTHERS[-1:]
        case _:
            return ()


def _caught(result: ProblemResult) -> list[TestResult]:
    return [test for test in result.tests if test.status is not Status.PASSED]


def _differences(usual: ProblemResult, again: ProblemResult) -> set[str]:
    """Return the ids of the tests with different statuses in the two results."""
    before = {test.id: test.status for test in usual.tests}
    return {test.id for test in again.tests if before[test.id] is not test.status}


def _missed_by_chance(
    candidate: Candidate, usual: ProblemResult, conditions: Conditions, root: Path, *, watch: bool
) -> set[str]:
    """Run the tests on a mistake again under other conditions.

    Return a set with a message if all tests pass, otherwise an empty set. To save time, the tests
    that caught the mistake under the usual conditions are run first.

    Args:
        candidate: the mistake.
        usual: the result under the usual conditions.
        conditions: the other conditions.
        root: the course's folder.
        watch: whether to detect forbidden calls.
    """
    for tests in ([test.id for test in _caught(usual)], ()):
        again = _run_once(
            candidate, conditions, root, watch=watch, tests=tests, enough=lambda r: not r.passed
        )
        if not again.passed:
            return set()
    return {"all tests pass under other conditions"}
