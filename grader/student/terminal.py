"""What `uv run pytest` shows of the tests of problems: a plugin for pytest.

It stands in for pytest's own failure blocks, unless a style of traceback is asked for.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from grader.result import Status
from grader.student.report import problem_report
from grader.testing.plugin import STATUS, session_of


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
    """Print each problem's tests, points and next step."""
    if config.getoption("tbstyle") != "auto" or exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    session = session_of(config)
    in_full = config.getoption("verbose") > 0
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    for id, result in session.results.items():
        text = problem_report(
            result,
            session.left_out[id],
            whole=len(result.tests) == session.chosen[id],
            in_full=in_full,
            printed=session.printed[id],
            encoding=encoding,
        )
        terminalreporter.write("\n" + text)
