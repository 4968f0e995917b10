"""A pytest plugin that prints the grader's report on problems in `uv run pytest`.

The report replaces pytest's failure reports, unless the user passes `--tb`.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from grader.course import is_problem_folder
from grader.result import Status
from grader.run.plugin import STATUS, session_of
from grader.run.session import Session
from grader.student.report import (
    WIDTH,
    command_to_compare,
    failure_report,
    problem_report,
    where_to_look,
)
from grader.student.seen import Reading, SeenMistakes

NOT_WRITTEN, TO_LOOK_AT = "not written yet", "to look at"
"""The categories of tests that do not pass. pytest prints them with the counts in its last line."""


def pytest_report_teststatus(report: Any) -> tuple[str, str, Any] | None:
    """Return the category, letter and word that pytest shows for a test that does not pass.

    Tests of unwritten functions have a separate category, so that pytest counts them separately.
    """
    status = dict(getattr(report, "user_properties", ())).get(STATUS)
    if status is None or status == Status.PASSED:
        return None
    if status == Status.NOT_IMPLEMENTED:
        return NOT_WRITTEN, "o", ("NOT WRITTEN YET", {"yellow": True})
    return TO_LOOK_AT, "x", ("LOOK", {"red": True})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print the report on one problem, or the progress in several problems."""
    if config.getoption("tbstyle") != "auto" or exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    terminalreporter.ensure_newline()
    session = session_of(config)
    whole = {id: len(r.tests) == session.chosen[id] for id, r in session.results.items()}
    several = len(whole) > 1 and all(whole.values())
    in_full = config.getoption("verbose") > 0
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    in_detail = _in_detail(session) if several and not in_full else [*session.results]
    readings = _readings(session, whole, in_detail)
    for id in in_detail:
        text = problem_report(
            session.results[id],
            session.left_out[id],
            whole=whole[id],
            in_full=in_full,
            printed=session.printed[id],
            reading=readings[id],
            width=min(WIDTH, shutil.get_terminal_size().columns),
            encoding=encoding,
        )
        terminalreporter.write(text + "\n" * several)
        if where := where_to_look(session.problems[id], session.results[id]):
            terminalreporter.write(f"{where}\n")
        is_solved = whole[id] and session.results[id].passed
        if is_solved and (command := command_to_compare(session.problems[id])):
            terminalreporter.write(f"Other solutions, and their costs: {command}\n")
    if several:
        terminalreporter.write(_progress(session, terminalreporter.hasmarkup, encoding))
    _count_tests(terminalreporter)


def _readings(
    session: Session, whole: Mapping[str, bool], in_detail: Collection[str]
) -> dict[str, Reading]:
    """Return a dictionary from problem ids to sentences about mistakes.

    Save which problems pass, and which mistakes the student has now seen.

    Args:
        session: the results of the test run.
        whole: for each problem, whether all its tests were run.
        in_detail: the ids of the problems with a detailed report.
    """
    readings = {}
    for id, result in session.results.items():
        problem = session.problems[id]
        memory = SeenMistakes(problem.folder.parents[1])
        readings[id] = memory.reading(result)
        if whole[id]:
            memory.save_passed(problem, result)
        if id in in_detail:
            memory.mark_seen(id, readings[id].seen)
    return readings


def _count_tests(reporter: pytest.TerminalReporter) -> None:
    """Change pytest's counters so that a test with several cases is counted only once."""
    worst = {}
    for category in ("passed", NOT_WRITTEN, TO_LOOK_AT):  # later is worse
        for report in filter(_is_of_problem, reporter.stats.get(category, [])):
            worst[_test_of(report)] = category, report
    for category in ("passed", NOT_WRITTEN, TO_LOOK_AT):
        if reports := reporter.stats.get(category):
            others = [report for report in reports if not _is_of_problem(report)]
            reports[:] = [*others, *(one for kind, one in worst.values() if kind == category)]
    if items := reporter.stats.get("deselected"):
        ours = [item for item in items if is_problem_folder(item.path.parent)]
        others = [item for item in items if item not in ours]
        items[:] = [*others, *{_test_of(item): item for item in ours}.values()]


def _is_of_problem(report: Any) -> bool:
    return STATUS in dict(getattr(report, "user_properties", ()))


def _test_of(one: Any) -> str:
    """Return the node id of a pytest item or report, without parameters in brackets."""
    return str(one.nodeid).partition("[")[0]


def _in_detail(session: Session) -> list[str]:
    """Return a list with the id of the first problem with a failed test, if there is one.

    Its failures are shown. The other problems only have a row in the table.
    """
    return [id for id, result in session.results.items() if failure_report(result)][:1]


def _progress(session: Session, colours: bool, encoding: str) -> str:
    from rich.console import Console  # slow to import, and not needed for a single problem

    from grader.student.progress import show_progress

    screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    console = Console(file=screen, force_terminal=colours, highlight=False)
    results = {session.problems[id]: result for id, result in session.results.items()}
    show_progress(console, results, session.not_begun)
    screen.seek(0)
    return screen.read()
