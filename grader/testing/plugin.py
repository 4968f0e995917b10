"""The pytest plugin of the course: fixtures, points, the two halves, and what a student reads.

It acts only on the test files of problems and leaves every other test alone.
"""

from __future__ import annotations

import hashlib
import inspect
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest
import pytest_timeout  # type: ignore[import-untyped]
import torch
from _pytest.terminal import TerminalReporter

from grader.course import HIDDEN_MARKER, SUBMISSION_FILE, Course, Problem
from grader.errors import CannotLoad
from grader.forbidden import Guard
from grader.loading import STUDENT_MODULE, judge_load, load_module
from grader.result import ProblemResult, Status, TestResult
from grader.student.report import problem_report
from grader.testing.diagnose import Fingerprints, ask, load_probe
from grader.testing.verdict import CANT_END, Verdict, judge

TIMEOUT_SECONDS = 10.0
"""How long one test may run. The slowest one takes less than a second."""

_TIMEOUTS_BEFORE_GIVING_UP = 2
"""After so many endless tests of a problem its other tests are not run any more."""


DIAGNOSED = frozenset({Status.FAILED, Status.ERROR, Status.FORBIDDEN})
"""The statuses that a mistake in the student's code leads to."""


def forbidden_in(test_module: ModuleType) -> tuple[str, ...]:
    """Return the functions that a problem's test file forbids."""
    return tuple(getattr(test_module, "FORBIDDEN", ()))


class Opener(Protocol):
    """Gives a problem's code to the tests that ask for it: a module, or what acts like one."""

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> Any:
        """Return the code, the same for all tests; may raise CannotLoad.

        Args:
            problem: whose tests ask.
            forbidden: the functions that the problem forbids.
        """

    def reopen(self, problem: Problem, forbidden: tuple[str, ...]) -> Any:
        """Return the code loaded afresh, without what earlier calls may have left in it."""


class Session:
    """What a run of the course's tests is about: whose file is tested, and what came of it.

    Args:
        open_problem: gives the student's code to the tests.
        hidden: whether the tests below the hidden marker run too.
        seed: what the inputs that tests draw are made from.
        on_start: called with a problem's id and a test's id before the test runs.
        on_result: called with a problem's id and the result after each test.
        on_exception: called with a test's id and what it raised.
        reverse: whether the tests run in reverse order.
        diagnose: whether to name mistakes once the tests have run.
        watch: whether to look out for forbidden calls here; not where the student's code runs in
            another process, which does so itself.
    """

    def __init__(
        self,
        open_problem: Opener,
        *,
        hidden: bool = False,
        seed: int = 0,
        on_start: Callable[[str, str], None] = lambda problem, test: None,
        on_result: Callable[[str, TestResult], None] = lambda problem, result: None,
        on_exception: Callable[[str, BaseException], None] = lambda test, exception: None,
        reverse: bool = False,
        watch: bool = True,
        diagnose: bool = True,
    ) -> None:
        self.open_problem = open_problem
        self.hidden = hidden
        self.seed = seed
        self.on_start = on_start
        self.on_result = on_result
        self.on_exception = on_exception
        self.reverse = reverse
        self.watch = watch
        self.names_mistakes = diagnose
        self.problems: dict[str, Problem] = {}
        self.results: dict[str, ProblemResult] = {}
        self.left_out: Counter[str] = Counter()
        self.timeouts: Counter[str] = Counter()
        self.modules: dict[str, ModuleType] = {}

    def choose(self, items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
        """Return the tests that are to run in this session, in order, and those that are not."""
        left_out = [item for item in items if item.stash[_HIDDEN] and not self.hidden]
        self.left_out.update(problem_of(item).id for item in left_out)
        chosen = [item for item in items if item not in left_out]
        return chosen[::-1] if self.reverse else chosen, left_out

    def add(self, problem: Problem, module: ModuleType, result: TestResult) -> None:
        """Keep the result of one test of a problem's test module and pass it on."""
        self.problems[problem.id] = problem
        self.modules[problem.id] = module
        self.results.setdefault(problem.id, ProblemResult(problem.id)).tests.append(result)
        self.timeouts[problem.id] += result.status is Status.TIMEOUT
        self.on_result(problem.id, result)

    def diagnose(self) -> None:
        """Ask the code of each problem that has a wrong answer which known mistake it makes."""
        if not self.names_mistakes:
            return
        for id, result in self.results.items():
            wrong = [t for t in result.tests if t.status in DIAGNOSED]
            if wrong and self.problems[id].probe_file.is_file() and not self.timeouts[id]:
                self._diagnose(self.problems[id], result)

    def _diagnose(self, problem: Problem, result: ProblemResult) -> None:
        module = self.modules[problem.id]
        try:
            code = self.open_problem.reopen(problem, forbidden_in(module))
        except CannotLoad:
            return
        answers = ask(load_probe(problem), code, forbidden_in(module) if self.watch else ())
        found = Fingerprints.load(problem.fingerprints).diagnose(answers)
        names = tuple(name for diagnosis in found for name in diagnosis.mistakes)
        result.diagnoses = [diagnosis.text for diagnosis in found]
        result.mistakes = [list(diagnosis.mistakes) for diagnosis in found]
        result.tests = [
            replace(test, diagnosis=names) if test.status in DIAGNOSED else test
            for test in result.tests
        ]


class LocalFiles:
    """Opens each problem's file once, in this process.

    Args:
        find: returns where the file to test is.
    """

    def __init__(self, find: Callable[[Problem], Path] = lambda problem: problem.stub) -> None:
        self._find = find
        self._opened: dict[str, ModuleType | CannotLoad] = {}

    def __call__(self, problem: Problem, forbidden: tuple[str, ...] = ()) -> ModuleType:
        """Return the loaded module. The plugin itself watches what is called during a test.

        Raises:
            CannotLoad: the file isn't there or doesn't run.
        """
        if problem.id not in self._opened:
            self._opened[problem.id] = self._load(problem)
        opened = self._opened[problem.id]
        if isinstance(opened, CannotLoad):
            raise opened.afresh()
        return opened

    def reopen(self, problem: Problem, forbidden: tuple[str, ...] = ()) -> ModuleType:
        """Load the module anew and return it.

        Raises:
            CannotLoad: the file isn't there or doesn't run.
        """
        self(problem, forbidden)  # what could not be loaded, and may never end, isn't tried again
        del self._opened[problem.id]
        return self(problem, forbidden)

    def _load(self, problem: Problem) -> ModuleType | CannotLoad:
        path = self._find(problem)
        if not path.is_file():
            reason = f"There is no {SUBMISSION_FILE} in {path.parent.name}."
            return CannotLoad(Status.MISSING, reason)
        try:
            return load_module(path, STUDENT_MODULE + problem.id[:2])
        except BaseException as exception:
            if isinstance(exception, KeyboardInterrupt):
                raise
            return judge_load(exception, path)


class Rng:
    """Draws random tensors for one test from the run's seed.

    Attributes:
        generator: for draws of another kind.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        """Return N(0, 1) numbers of the given shape."""
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).to(dtype)


_SESSION = pytest.StashKey[Session]()
_PROBLEM = pytest.StashKey[Problem]()
_GUARD = pytest.StashKey[Guard]()
_SHARE = pytest.StashKey[float]()
_HIDDEN = pytest.StashKey[bool]()
_TESTS_SHA256 = pytest.StashKey[bytes]()
_TIMEOUT = pytest.StashKey[float]()
_PLAIN = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--hidden` and `--seed`."""
    group = parser.getgroup("attention course")
    group.addoption("--hidden", action="store_true", help="run the hidden halves too")
    group.addoption("--seed", type=int, default=0, help="what the tests' inputs are drawn from")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare a session on the student's own files, unless one was set already."""
    config.addinivalue_line("markers", "points(n): what a test of a problem is worth")
    if _SESSION not in config.stash:
        config.stash[_SESSION] = Session(
            LocalFiles(), hidden=config.getoption("hidden"), seed=config.getoption("seed")
        )


class Collect:
    """A plugin that makes a pytest run collect both halves, for sessions that are set later.

    Args:
        timeout: seconds that one test may run.
    """

    def __init__(self, timeout: float) -> None:
        self._session = Session(LocalFiles(), hidden=True)
        self._timeout = timeout

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Set the session before the plugin makes one of its own."""
        config.stash[_SESSION] = self._session
        config.stash[_TIMEOUT] = self._timeout


def use_session(session: Session, config: pytest.Config) -> None:
    """Make what is run from now on report to `session`."""
    config.stash[_SESSION] = session


def problem_of(item: pytest.Item) -> Problem:
    """Return the problem that a collected test is of."""
    return item.stash[_PROBLEM]


# Collection: which tests are the course's, what they are worth, which half they stand in.


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Share out points among cases, leave out the hidden half, set the time limit."""
    course = _adopt(items)
    cases = Counter(_function_key(item) for item in course)
    for item in course:
        marker = item.get_closest_marker("points")
        item.stash[_SHARE] = (marker.args[0] if marker else 0) / cases[_function_key(item)]
        item.stash[_PLAIN] = _is_plain(item)
        item.add_marker(pytest.mark.timeout(config.stash.get(_TIMEOUT, TIMEOUT_SECONDS)))
    left_out = config.stash[_SESSION].choose(course)[1]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make torch load what it loads late, before the first test's clock runs."""
    if any(_PROBLEM in item.stash for item in session.items):
        load_late_parts()


def load_late_parts() -> None:
    """Use what torch loads only when it is used."""
    with Guard(("softmax",)):
        x = torch.ones(2, requires_grad=True)
        torch.autograd.grad(x * 2, x, torch.ones(2))


def _adopt(items: list[pytest.Item]) -> list[pytest.Function]:
    """Return the tests of problems, with notes on what they belong to; not those of others."""
    course: list[pytest.Function] = []
    files: dict[Path, tuple[int | None, bytes]] = {}
    for item in items:
        problem = Problem(item.path.parent)
        if item.path.name != problem.test_file.name or not isinstance(item, pytest.Function):
            continue
        if item.path not in files:
            digest = hashlib.sha256(item.path.read_bytes()).digest()
            files[item.path] = problem.first_hidden_line(), digest
        marker, item.stash[_TESTS_SHA256] = files[item.path]
        item.stash[_PROBLEM] = problem
        item.stash[_HIDDEN] = marker is not None and item.function.__code__.co_firstlineno > marker
        course.append(item)
    return course


def _is_plain(item: pytest.Function) -> bool:
    """Return whether all that a test needs is to be called, with the course's own fixtures."""
    known = {*_FIXTURES, *_case_names(item)}
    function = item.function
    return (
        known.issuperset(inspect.signature(function).parameters)
        and {*known, "request"}.issuperset(item.fixturenames)  # asked for by the course's fixtures
        and all(mark.name in ("points", "parametrize") for mark in item.iter_markers())
        and item.cls is None
        and not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function))
    )


def _case_names(item: pytest.Function) -> set[str]:
    """Return the names of what the cases of a parametrised test give it directly."""
    marks = item.iter_markers("parametrize")
    names = [mark.args[0] for mark in marks if mark.args and not mark.kwargs.get("indirect")]
    lists = [name.split(",") if isinstance(name, str) else name for name in names]
    return {name.strip() for each in lists for name in each}


def _function_key(item: pytest.Item) -> tuple[Path, str]:
    return item.path, item.name.split("[")[0]


# Fixtures


@pytest.fixture
def problem(request: pytest.FixtureRequest) -> Any:
    """The student's module."""
    return _module_to_test(request.node)


@pytest.fixture
def solution(request: pytest.FixtureRequest) -> ModuleType:
    """The reference solution's module; for tests below the hidden marker."""
    return _reference(request.node)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Rng:
    """Random inputs that depend on the run's seed and the test's name, and on nothing else."""
    return _rng(request.node)


def _module_to_test(item: pytest.Item) -> Any:
    session = item.config.stash[_SESSION]
    return session.open_problem(item.stash[_PROBLEM], forbidden_in(_module(item)))


_references: dict[Path, ModuleType] = {}


def _reference(item: pytest.Item) -> ModuleType:
    if not item.stash[_HIDDEN]:
        raise pytest.UsageError(f"{item.name} stands above '{HIDDEN_MARKER}': no solution there")
    problem = item.stash[_PROBLEM]
    path = Course(problem.folder.parent.parent).solution(problem)
    if path not in _references:
        _references[path] = load_module(path, f"solution_{problem.id[:2]}")
    return _references[path]


def _rng(item: pytest.Item) -> Rng:
    return Rng(_seed(item, "rng"))


_FIXTURES: Mapping[str, Callable[[pytest.Item], Any]] = {
    "problem": _module_to_test,
    "solution": _reference,
    "rng": _rng,
}


def _arguments(item: pytest.Function) -> dict[str, Any]:
    """Return what a plain test is called with. pytest takes several times as long to find it."""
    cases = item.callspec.params if hasattr(item, "callspec") else {}
    return dict(cases) | {n: _FIXTURES[n](item) for n in item.fixturenames if n in _FIXTURES}


def _seed(item: pytest.Item, purpose: str) -> int:
    """Return a number that the run's seed, the test and the purpose settle.

    The test file's own text goes in too. A student's code gets to see the global random state, and
    must not be able to work out from it which test is running or what that test has drawn.
    """
    session = item.config.stash[_SESSION]
    digest = hashlib.sha256(item.stash[_TESTS_SHA256])
    digest.update(f"{session.seed}/{item.name}/{purpose}".encode())
    return int.from_bytes(digest.digest()[:6], "big")


# Running: by pytest, which calls the hooks, or as directly as can be


def run_test(item: pytest.Item) -> None:
    """Run a collected test and keep its result.

    A plain test runs without what pytest does around each, which takes longer than many a test.
    """
    assert isinstance(item, pytest.Function)
    if item.stash[_PLAIN]:
        _run_plain(item)
    else:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def _run_plain(item: pytest.Function) -> None:
    with _time_limit(item), warnings.catch_warnings():
        exception, seconds = _call(item)
    _end(item, exception, seconds)


def _call(item: pytest.Function) -> tuple[BaseException | None, float]:
    """Return what a plain test raised, if anything, and how long it took."""
    start = time.perf_counter()
    try:
        _begin(item)
        arguments = _arguments(item)
        start = time.perf_counter()
        with _guard(item):
            item.function(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as exception:  # student code may raise SystemExit or worse
        return exception, time.perf_counter() - start
    return None, time.perf_counter() - start


@contextmanager
def _time_limit(item: pytest.Function) -> Iterator[None]:
    """End what runs longer than a test may, as pytest-timeout does."""
    seconds = item.config.stash.get(_TIMEOUT, TIMEOUT_SECONDS)
    settings = pytest_timeout.Settings(seconds, pytest_timeout.DEFAULT_METHOD, False, False)
    item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)
    try:
        yield
    finally:
        item.config.hook.pytest_timeout_cancel_timer(item=item)


def _begin(item: pytest.Item) -> None:
    """Announce a test and give it a random state of its own."""
    session, problem = item.config.stash[_SESSION], item.stash[_PROBLEM]
    item.stash[_GUARD] = Guard(())  # not that of an earlier run
    session.on_start(problem.id, item.name)
    if session.timeouts[problem.id] >= _TIMEOUTS_BEFORE_GIVING_UP:
        raise CannotLoad(
            Status.TIMEOUT, "Not run: two tests before this one did not come to an end."
        )
    seed = _seed(item, "global random state")
    random.seed(seed)
    torch.default_generator.manual_seed(seed)  # the CPU's only: quicker by a millisecond


def _guard(item: pytest.Item) -> Guard:
    """Return the guard that notices the forbidden functions in a test that is about to run."""
    watch = item.config.stash[_SESSION].watch
    item.stash[_GUARD] = Guard(forbidden_in(_module(item)) if watch else ())
    return item.stash[_GUARD]


def _end(item: pytest.Item, exception: BaseException | None, seconds: float) -> Verdict:
    """Judge what a test raised, keep the result, and return the verdict."""
    session = item.config.stash[_SESSION]
    if exception is not None:
        session.on_exception(item.name, exception)
    verdict = judge(exception, item.stash[_GUARD])
    result = TestResult(
        id=item.name,
        title=_title(item),
        hidden=item.stash[_HIDDEN],
        max=item.stash[_SHARE],
        status=verdict.status,
        message=verdict.message,
        seconds=round(seconds, 4),
    )
    session.add(item.stash[_PROBLEM], _module(item), result)
    return verdict


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin a test."""
    if _PROBLEM not in item.stash:
        return
    _begin(item)
    if item.stash[_PLAIN]:
        assert isinstance(item, pytest.Function)
        item.funcargs.update(_arguments(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run the test under its guard."""
    if _PROBLEM not in item.stash:
        return (yield)
    with _guard(item):
        try:
            return (yield)
        except pytest.exit.Exception:  # pytest would end the whole run
            raise CannotLoad(Status.ERROR, CANT_END) from None


def _module(item: pytest.Item) -> ModuleType:
    assert isinstance(item, pytest.Function)
    module: ModuleType = item.module
    return module


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace pytest's view of a test by the course's: a status, and a message for the student."""
    if _PROBLEM not in item.stash or call.when == "teardown":
        return (yield)
    if call.when == "setup" and call.excinfo is None:
        return (yield)
    verdict = _end(item, call.excinfo.value if call.excinfo else None, call.duration)
    short = item.config.getoption("tbstyle") == "auto"
    if short:  # spare pytest the work of drawing a traceback, which can take longer than the test
        for name in ("repr_failure", "_repr_failure_py"):  # the second is for what fails in setup
            setattr(item, name, lambda *args, **kwargs: verdict.message)
    report = yield
    report.outcome = "passed" if verdict.status is Status.PASSED else "failed"
    report.longrepr = report.longrepr if report.failed else None
    if short:
        report.user_properties.append(("status", verdict.status.value))
        report.longrepr = verdict.message or None
    return report


def _title(item: pytest.Item) -> str:
    assert isinstance(item, pytest.Function)
    return " ".join((item.function.__doc__ or item.name).split()).rstrip(".")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Name the mistakes, once all tests have run."""
    session.config.stash[_SESSION].diagnose()


# What the terminal shows


def pytest_report_teststatus(report: Any) -> tuple[str, str, Any] | None:
    """Count what isn't written yet apart from what is wrong."""
    status = dict(getattr(report, "user_properties", ())).get("status")
    if status is None or status == Status.PASSED:
        return None
    if status == Status.NOT_IMPLEMENTED:
        return "not written yet", "o", ("NOT WRITTEN YET", {"yellow": True})
    return "to look at", "x", ("LOOK", {"red": True})


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print each problem's tests, points and next step, in place of pytest's failure blocks."""
    if config.getoption("tbstyle") != "auto":
        return
    session = config.stash[_SESSION]
    in_full = config.getoption("verbose") > 0
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    for id, result in session.results.items():
        text = problem_report(result, session.left_out[id], in_full=in_full, encoding=encoding)
        terminalreporter.write("\n" + text)
