"""The reports of a class: pages for students and for the instructor, and the gradebook."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from grader.course import REFERENCE, Course
from grader.diagnose.unknown_answers import groups
from grader.files import write_whole
from grader.grade.preparing import GRADEBOOK
from grader.grade.previous import RESULTS
from grader.gradebook.roster import Matched
from grader.reports.class_table import RunSummary
from grader.reports.dashboard import ClassFacts, NamelessMistake, dashboard
from grader.reports.feedback import feedback_page
from grader.reports.gradebook_csv import write_gradebook
from grader.reports.identical import identical_files
from grader.reports.page import write_pages
from grader.reports.sources import SOURCES, Sources
from grader.reports.student_page import student_pages
from grader.result import Policy, Status, SubmissionResult

_INDEX, _FEEDBACK, _STUDENTS = "index.html", "feedback", "instructor"
REPORT_FOLDERS = (RESULTS, _FEEDBACK, _STUDENTS, SOURCES)
REPORT_FILES = (_INDEX, GRADEBOOK)
"""The files that a run writes directly into the folder of reports.

Before grading, the run checks that it can write them.
"""


class ClassReports:
    """The reports of a class.

    Args:
        rows: the results of the whole class, with the adjustments from the instructor's files.
        course: the course.
        part: the only part to report; None for all parts.

    Attributes:
        shown: the results without skipped optional problems, sorted by submission.
    """

    def __init__(self, rows: Iterable[SubmissionResult], course: Course, part: str | None) -> None:
        self._rows = list(rows)
        self.shown = sorted(
            (row.without_skipped() for row in self._rows), key=lambda row: row.submission
        )
        self._course = course
        self._parts = {problem.id: problem.part for problem in course.problems()}
        self._part = part

    def problems(self) -> list[str]:
        """Return the ids of the required problems that have a result.

        If there are no results at all, return the ids of all required problems.
        """
        known = {problem.id for row in self._rows for problem in row.problems}
        asked = {id for id, part in self._parts.items() if self._part in (None, part.id)}
        return [id for id in self._counted() if id in known or not known and id in asked]

    def _counted(self) -> list[str]:
        return [id for id, part in self._parts.items() if not part.optional]

    def optional(self) -> dict[str, list[str]]:
        """Map the ids of optional parts to the ids of their problems.

        A part is included if a student attempted one of its problems, or if the user requested it.
        """
        tried = {id for row in self._rows for id in row.optional}
        shown: dict[str, list[str]] = {}
        for id, part in self._parts.items():
            if part.optional and part.id in {*tried, self._part}:
                shown.setdefault(part.id, []).append(id)
        return shown

    def write(
        self, out: Path, run: RunSummary, policy: Policy, matched: Matched, sources: Sources
    ) -> None:
        """Write all reports. The gradebook is written last.

        Args:
            out: the folder of reports.
            run: the summary of the run.
            policy: how much of the hidden tests the feedback shows.
            matched: the submissions of the class, matched with the roster.
            sources: the graded files.
        """
        problems, optional = self.problems(), self.optional()
        today = date.today().isoformat()
        identical = identical_files(self.shown, sources, self._correct_files())
        write_pages(
            ((row.submission, feedback_page(row, policy, today)) for row in self.shown),
            out / _FEEDBACK,
        )
        write_pages(student_pages(self.shown, sources, identical, today), out / _STUDENTS)
        sections = {row.submission: matched.section(row.who) for row in self._rows}
        sections = {name: section for name, section in sections.items() if section}
        about = ClassFacts(
            self._course.manifest.title,
            today,
            run.news,
            sections,
            run.absent,
            _nameless(self.shown),
        )
        write_whole(out / _INDEX, dashboard(self.shown, problems, identical, optional, about))
        write_gradebook(self.shown, self._counted(), out / GRADEBOOK, optional, sections)
        sources.keep_only(problem.sha256 for row in self._rows for problem in row.problems)

    def _correct_files(self) -> dict[str, dict[str, bytes]]:
        """Map the id of each problem to the contents of its reference solution and its variants.

        Each value maps the names of these files in reports to their contents.
        """
        contents: dict[str, dict[str, bytes]] = {}
        for problem in self._course.problems():
            files = self._course.right_files(problem).items()
            named = [(n if n == REFERENCE else f"{n}.py", p) for n, p in files if p.is_file()]
            contents[problem.id] = {f"the course's own {n}": p.read_bytes() for n, p in named}
        return contents


def _nameless(results: Iterable[SubmissionResult]) -> list[NamelessMistake]:
    valid = [result for result in results if result.status != Status.INTERNAL]
    return [
        NamelessMistake(each.problem, each.owners, each.failed, each.submissions)
        for each in groups(valid)
    ]
