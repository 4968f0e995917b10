"""The pytest plugin of the course: options, points, the hidden half, and the course's own runner.

It acts only on the test files of problems and ignores other tests. `runner` runs and judges the
tests, so a student's pytest and a grader give the same verdicts.
"""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.code.loading import is_students
from grader.code.quiet import quiet
from grader.course import OWN_TESTS, Problem, is_problem_folder, on_the_way, way_to
from grader.errors import CannotLoad, CourseError
from grader.result import Status, TestResult
from grader.run.announce import loaded
from grader.run.collecting import MARKERS, CollectedTest, records
from grader.run.local_files import LocalFiles
from grader.run.mistakes_made import name_mistakes
from grader.run.runner import Outcome, load_late_parts, run_test
from grader.run.session import Session
from grader.run.verdict import ends_tests

STATUS = "status"
"""The property of a report with the status of a problem's test."""

_SESSION = pytest.StashKey[Session]()
_TEST = pytest.StashKey[CollectedTest]()
_RESULT = pytest.StashKey[TestResult]()


def session_of(config: pytest.Config) -> Session:
    """Return the session that collects the results of problems' tests in a run of pytest."""
    return config.stash[_SESSION]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--hidden` and `--seed`."""
    group = parser.getgroup("grader")
    group.addoption("--hidden", action="store_true", help="run the hidden halves too")
    group.addoption("--seed", type=int, default=0, help="seed of the tests' inputs")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare a session on the student's own files."""
    loaded()
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    hidden, seed = config.getoption("hidden"), config.getoption("seed")
    config.stash[_SESSION] = Session(LocalFiles(), hidden=hidden, seed=seed, debugger=True)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print the right command if a requested file has no tests."""
    if exitstatus != pytest.ExitCode.NO_TESTS_COLLECTED:
        return
    start = config.invocation_params.dir
    for path in [(start / arg.partition("::")[0]).resolve() for arg in config.args]:
        if path.is_file() and is_problem_folder(path.parent):
            run = f"{way_to(path.parent)}uv run pytest"
            terminalreporter.write_line(
                f"{path.name} holds no tests. To test your work, run: {run}"
            )


# Collection


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Record the tests of problems, and deselect the hidden half.

    Optional problems that a student has not begun are deselected, too, unless all are optional.
    """
    try:
        course = records(items)
    except CourseError as error:
        raise pytest.UsageError(str(error)) from None
    for item, test in course.items():
        item.stash[_TEST] = test
    session = session_of(config)
    problems = list(dict.fromkeys(test.problem for test in course.values()))
    begun = on_the_way(problems)
    session.not_begun = [problem for problem in problems if problem not in begun]
    chosen = {*session.choose([test for test in course.values() if test.problem in begun])}
    if _some_are_named(config):
        session.chosen.clear()  # so that no points are shown for a part of the tests
    left_out = [item for item, test in course.items() if test not in chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _some_are_named(config: pytest.Config) -> bool:
    """Return whether single tests are run: those that were named, or those that failed last."""
    cache = getattr(config, "cache", None)
    last = config.getoption("lf", False) and cache is not None and cache.get("cache/lastfailed", {})
    return bool(last) or any("::" in arg for arg in config.args)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make torch ready, unless there are only other tests."""
    tests = [item.stash[_TEST] for item in session.items if _TEST in item.stash]
    if tests:
        load_late_parts()


# Fixtures. pytest needs to find them, but the runner provides their values to tests of problems.


@pytest.fixture
def problem(request: pytest.FixtureRequest) -> object:
    """The student's module, also for tests that the student wrote."""
    path: Path = request.node.path
    if path.name == OWN_TESTS and is_problem_folder(path.parent):
        try:
            return session_of(request.config).open_problem(Problem(path.parent), ())
        except CannotLoad as reason:
            pytest.fail(str(reason), pytrace=False)
    _left_to_the_runner(request)
    return None


@pytest.fixture
def solution(request: pytest.FixtureRequest) -> None:
    """The reference solution's module; for tests below the hidden marker."""
    _left_to_the_runner(request)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> None:
    """Random inputs that depend on the run's seed and the test's name, and on nothing else."""
    _left_to_the_runner(request)


def _left_to_the_runner(request: pytest.FixtureRequest) -> None:
    if _TEST not in request.node.stash:
        pytest.fail("Only the tests in a problem's own test file are given this.", pytrace=False)


# Running


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of a problem as in grading, instead of pytest's call."""
    test = pyfuncitem.stash.get(_TEST, None)
    if test is None:
        return None
    test = replace(test, function=pyfuncitem.obj)  # a debugger may have wrapped it
    try:
        outcome = run_test(test, session_of(pyfuncitem.config))
    except BdbQuit:  # of a debugger that isn't pytest's
        pytest.exit("Quitting debugger")
    pyfuncitem.stash[_RESULT] = outcome.result
    if outcome.result.status is not Status.PASSED:
        raise _to_report(outcome, test, pyfuncitem.config)
    return True


def _to_report(outcome: Outcome, test: CollectedTest, config: pytest.Config) -> BaseException:
    """Return an exception with only the message, or the original one if the user requested it.

    Formatting a traceback can take longer than the test.
    """
    debugger, exception = config.getoption("usepdb"), outcome.exception
    wanted = debugger or not _is_short(config)
    if wanted and exception and not (isinstance(exception, CannotLoad) or ends_tests(exception)):
        return _cut(exception, test) if debugger else exception
    return pytest.fail.Exception(outcome.result.message, pytrace=False)


def _cut(exception: BaseException, test: CollectedTest) -> BaseException:
    """Cut the traceback so that a debugger stops in student code, or else in the test's line."""
    steps, step = [], exception.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    student = [step for step in steps if is_students(step.tb_frame)]
    tests = [s for s in steps if s.tb_frame.f_code.co_filename == str(test.problem.test_file)]
    for last in [*tests, *student][-1:]:
        last.tb_next = None
    return exception


def _is_short(config: pytest.Config) -> bool:
    """Return whether to show messages instead of tracebacks, as `--tb` was not given."""
    return bool(config.getoption("tbstyle") == "auto")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the status and the message for the student to pytest's report."""
    report = yield
    result = item.stash.get(_RESULT, None)
    if result is not None and call.when == "call":
        printed = session_of(item.config).printed[item.stash[_TEST].problem.id]
        printed[result.id] = report.capstdout + report.capstderr
        if _is_short(item.config):
            report.user_properties.append((STATUS, result.status.value))
            report.longrepr = result.message or None
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Name the mistakes, once all tests have run."""
    if exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    try:
        with quiet():
            name_mistakes(session_of(session.config))
    except CourseError as error:  # the tests have run, so report their results
        session.config.get_terminal_writer().line(f"\n{error}")
