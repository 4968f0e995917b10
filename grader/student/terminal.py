"""What `uv run pytest` shows of the tests of problems: a plugin for pytest.

It stands in for pytest's own failure blocks, unless a style of traceback is asked for.
"""

from __future__ import annotations

import io
import shutil
import sys
from typing import Any

import pytest

from grader.result import Status
from grader.student.report import WIDTH, problem_report, trouble
from grader.testing.plugin import STATUS, session_of
from grader.testing.session import Session


def pytest_report_teststatus(report: Any) -> tuple[str, str, Any] | None:
    """Count what isn't written yet apart from what is wrong."""
    status = dict(getattr(report, "user_properties", ())).get(STATUS)
    if status is None or status == Status.PASSED:
        return None
    if status == Status.NOT_IMPLEMENTED:
        return "not written yet", "o", ("NOT WRITTEN YET", {"yellow": True})
    return "to look at", "x", ("LOOK", {"red": True})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print a problem's tests, points and next step; of several, how far each of them is."""
    if config.getoption("tbstyle") != "auto" or exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    terminalreporter.ensure_newline()
    session = session_of(config)
    whole = {id: len(r.tests) == session.chosen[id] for id, r in session.results.items()}
    several = len(whole) > 1 and all(whole.values())
    in_full = config.getoption("verbose") > 0
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    for id in _in_detail(session) if several and not in_full else session.results:
        text = problem_report(
            session.results[id],
            session.left_out[id],
            whole=whole[id],
            in_full=in_full,
            printed=session.printed[id],
            width=min(WIDTH, shutil.get_terminal_size().columns),
            encoding=encoding,
        )
        terminalreporter.write(text + "\n" * several)
    if several:
        terminalreporter.write(_progress(session, terminalreporter.hasmarkup, encoding))


def _in_detail(session: Session) -> list[str]:
    """Return the first problem that has a wrong answer; of the others the table says enough."""
    return [id for id, result in session.results.items() if trouble(result)][:1]


def _progress(session: Session, colours: bool, encoding: str) -> str:
    from rich.console import Console  # not needed for a single problem

    from grader.student.progress import show_progress

    screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    console = Console(file=screen, force_terminal=colours, highlight=False)
    results = {session.problems[id]: result for id, result in session.results.items()}
    show_progress(console, results, session.not_begun)
    screen.seek(0)
    return screen.read()
