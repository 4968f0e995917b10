"""What has to be right before anything is graded: found at the start, not after hours."""

from __future__ import annotations

from pathlib import Path

from grader.files import require_writable
from grader.grade.previous import RESULTS
from grader.grade.settings import Settings
from grader.reports.sources import SOURCES
from grader.reports.statistics import TERM_PAGE
from grader.reports.student_page import STUDENT_PAGES

_FOLDERS = (RESULTS, "feedback", "gradescope", STUDENT_PAGES, SOURCES)
_FILES = ("index.html", TERM_PAGE, "junit.xml", "gradebook.csv")


def require_ready(out: Path, settings: Settings) -> None:
    """Make sure that grading can start, and that its reports can be written.

    Args:
        out: the folder of results and reports.
        settings: limits.

    Raises:
        UsageError: something is not as it has to be; the text says what to do.
    """
    require_writable(out, _FOLDERS, _FILES)
