"""The pytest plugin of the course: options, points and the hidden half.

The plugin acts only on the test files of problems and ignores other tests. `runner` runs and judges
the tests, so a student's pytest and the grading commands give the same verdicts.
"""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.code.loading import is_students
from grader.code.quiet import quiet
from grader.course import OWN_TESTS, Problem, cd_to, is_problem_folder, problems_to_solve
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
"""The property of pytest's report that contains the status of a problem's test."""

_SESSION = pytest.StashKey[Session]()
_TEST = pytest.StashKey[CollectedTest]()
_RESULT = pytest.StashKey[TestResult]()


def session_of(config: pytest.Config) -> Session:
    """Return the grader's session for a run of pytest. It collects results of problems' tests."""
    return config.stash[_SESSION]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--hidden` and `--seed`."""
    group = parser.getgroup("grader")
    group.addoption("--hidden", action="store_true", help="also run the hidden tests")
    group.addoption("--seed", type=int, default=0, help="seed of the tests' inputs")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and create a session that tests the student's files."""
    loaded()
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    hidden, seed = config.getoption("hidden"), config.getoption("seed")
    config.stash[_SESSION] = Session(LocalFiles(), hidden=hidden, seed=seed, debugger=True)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print the command that tests a problem, if the user requested a file without tests."""
    if exitstatus != pytest.ExitCode.NO_TESTS_COLLECTED:
        return
    start = config.invocation_params.dir
    for path in [(start / arg.partition("::")[0]).resolve() for arg in config.args]:
        if path.is_file() and is_problem_folder(path.parent):
            run = f"{cd_to(path.parent)}uv run pytest"
            terminalreporter.write_line(
                f"{path.name} contains no tests. To test your work, run: {run}"
            )


# Collection


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Record the tests of problems, and deselect the hidden half unless the user requested it.

    Also deselect optional problems that the student has not begun, unless all problems are
    optional.
    """
    try:
        course = records(items)
    except CourseError as error:
        raise pytest.UsageError(str(error)) from None
    for item, test in course.items():
        item.stash[_TEST] = test
    session = session_of(config)
    problems = list(dict.fromkeys(test.problem for test in course.values()))
    begun = problems_to_solve(problems)
    session.not_begun = [problem for problem in problems if problem not in begun]
    chosen = {*session.choose([test for test in course.values() if test.problem in begun])}
    if _some_are_named(config):
        session.chosen.clear()  # so that no points are shown for single tests
    left_out = [item for item, test in course.items() if test not in chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _some_are_named(config: pytest.Config) -> bool:
    """Return whether the user selected single tests, by name or with `--last-failed`."""
    cache = getattr(config, "cache", None)
    last = config.getoption("lf", False) and cache is not None and cache.get("cache/lastfailed", {})
    return bool(last) or any("::" in arg for arg in config.args)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Load the parts of torch that tests need, if a test of a problem was collected."""
    tests = [item.stash[_TEST] for item in session.items if _TEST in item.stash]
    if tests:
        load_late_parts()


# Fixtures. pytest needs to find them, but the runner provides their values to tests of problems.


@pytest.fixture
def problem(request: pytest.FixtureRequest) -> object:
    """The student's module. The student's own tests can use this fixture, too."""
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
    """A generator of random inputs. Its seed depends on the run's seed, the salt and the test."""
    _left_to_the_runner(request)


def _left_to_the_runner(request: pytest.FixtureRequest) -> None:
    if _TEST not in request.node.stash:
        pytest.fail("Only tests in a problem's test file can use this fixture.", pytrace=False)


# Running


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of a problem with `run_test`, instead of letting pytest call the function."""
    test = pyfuncitem.stash.get(_TEST, None)
    if test is None:
        return None
    test = replace(test, function=pyfuncitem.obj)  # pytest's debugger may have wrapped it
    try:
        outcome = run_test(test, session_of(pyfuncitem.config))
    except BdbQuit:  # pytest's debugger raises pytest.exit.Exception instead
        pytest.exit("Quitting debugger")
    pyfuncitem.stash[_RESULT] = outcome.result
    if outcome.result.status is not Status.PASSED:
        raise _to_report(outcome, test, pyfuncitem.config)
    return True


def _to_report(outcome: Outcome, test: CollectedTest, config: pytest.Config) -> BaseException:
    """Return the exception that pytest reports for a failed test.

    By default, this exception contains only the message, because formatting a traceback can take
    longer than the test. If the user requested tracebacks or a debugger, return the original
    exception.
    """
    debugger, exception = config.getoption("usepdb"), outcome.exception
    wanted = debugger or not _is_short(config)
    if wanted and exception and not (isinstance(exception, CannotLoad) or ends_tests(exception)):
        return _cut_traceback(exception, test) if debugger else exception
    return pytest.fail.Exception(outcome.result.message, pytrace=False)


def _cut_traceback(exception: BaseException, test: CollectedTest) -> BaseException:
    """End the traceback in student code, or in the test if the traceback has no student code.

    A debugger stops in the last frame of the traceback.
    """
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
    """Return whether to show messages without tracebacks, which is the default without `--tb`."""
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
    """Name the mistakes after all tests have run, unless the user interrupted pytest."""
    if exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    try:
        with quiet():
            name_mistakes(session_of(session.config))
    except CourseError as error:  # pytest must still report the results
        session.config.get_terminal_writer().line(f"\n{error}")
