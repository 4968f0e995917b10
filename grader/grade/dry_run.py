"""Implement `grade --dry-run`: report what a run would do, without doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.markup import escape
from rich.table import Table

from grader.grade.outcome import assemble
from grader.grade.preparing import Prepared
from grader.grade.previous import NEW, Plan
from grader.grade.same_person import SamePeople, same_people, suggested_lines
from grader.grade.settings import Settings
from grader.gradebook.adjusting import ClassBook
from grader.gradebook.folder import GradebookFolder
from grader.intake.handed_in import StudentFile
from grader.intake.submissions import HANDED_IN_LATE
from grader.reports.class_table import RunSummary, about_book, about_run
from grader.reports.display_names import people as people_of
from grader.result import ProblemResult, SubmissionResult
from grader.text import cell, counted, line


@dataclass
class Forecast:
    """The forecast of a run.

    Attributes:
        plans: the problems to grade and to keep, for each submission.
        kept: the results of the whole class, except for problems that a run would grade.
        same: describes which results belong to the same person.
        late: the (row name, problem id) pair of each late file.
        summary: the summary of the run.
    """

    plans: Sequence[Plan]
    kept: list[SubmissionResult]
    same: SamePeople
    late: set[tuple[str, str]]
    summary: RunSummary


def make_forecast(ready: Prepared, settings: Settings, book: GradebookFolder) -> Forecast:
    """Return what `grade_class` would do in a prepared run.

    Raises:
        UsageError: one of the instructor's files can't be read.
    """
    plans = ready.plans
    kept = [assemble(p.submission, settings, "", [*p.kept.values()]) for p in plans]
    submitted = [_as_submitted(each, result) for each, result in zip(plans, kept, strict=True)]
    all_known = [*map(_merged, kept, submitted), *ready.absent]
    same = same_people(all_known, ready.people, book.roster)
    now = ClassBook(same.rows([*kept, *ready.absent]), book, same.also)
    new = same.rows([*submitted, *(replace(each, problems=[]) for each in ready.absent)])
    submitted_book = ClassBook(new, book, same.also)
    before = {row.submission: row for row in same.rows(ready.previous.results.values())}
    summary = ready.summary(
        now.results,
        same,
        now.matched,
        book,
        about_book=_final_messages(now, plans),
        asked=[
            *suggested_lines(same.rows(all_known), ready.rows_of(same), ready.people, book.roster),
            *submitted_book.questions_about_new_files(before),
        ],
        pending=_pending(plans, same, {each.submission: each.who for each in all_known}),
    )
    late = {
        (row.submission, problem.id)
        for row in new
        for problem in row.problems
        if submitted_book.is_late(row, problem)
    }
    return Forecast(plans, [*kept, *ready.absent], same, late, summary)


def _merged(kept: SubmissionResult, submitted: SubmissionResult) -> SubmissionResult:
    """Combine the problems of both results. If both have a problem, use that of `submitted`."""
    ids = {problem.id for problem in submitted.problems}
    left = [problem for problem in kept.problems if problem.id not in ids]
    return replace(kept, problems=[*submitted.problems, *left])


def _pending(
    plans: Iterable[Plan], same: SamePeople, who: Mapping[str, str]
) -> set[tuple[str, str]]:
    """Return the gradebook's (row, column) pair of each mark that a run would add."""
    names = ((plan.submission.name, id) for plan in plans for id in plan.reasons)
    return {(cell(who[same.row_of.get(name, name)]), id) for name, id in names}


def _final_messages(book: ClassBook, plans: Iterable[Plan]) -> list[str]:
    """Return the messages about the instructor's files.

    If the run would grade any problem, leave out the messages about ungraded problems.
    """
    temporary = book.ungraded if any(each.reasons for each in plans) else ()
    return [text for text in book.messages if text not in temporary]


def _as_submitted(plan: Plan, result: SubmissionResult) -> SubmissionResult:
    """Return an ungraded result, which contains the submitted problems without their tests."""
    added = [
        ProblemResult(id, file.sha256, late=file.late, handed_in=file.handed_in)
        for id, file in plan.submission.files.items()
        if file.is_submitted
    ]
    return SubmissionResult(
        result.submission,
        result.seed,
        result.isolation,
        "",
        added,
        identity=result.identity,
        full_name=result.full_name,
    )


# Output


def reading_table(forecast: Forecast) -> Table:
    """Return a table of submissions, with the planned action for each problem."""
    ids = sorted({id for each in forecast.plans for id in each.submission.files})
    row_of = forecast.same.row_of
    names = people_of(forecast.kept)
    table = Table(pad_edge=False)
    for title in ("submission", "handed in as", *(id[:2] for id in ids)):
        table.add_column(title, overflow="fold")
    for each in sorted(forecast.plans, key=lambda p: str(names[p.submission.name]).casefold()):
        submission = each.submission
        row = row_of.get(submission.name, submission.name)
        cells = [
            _state(submission.files.get(id), each, id, (row, id) in forecast.late) for id in ids
        ]
        table.add_row(
            *(escape(line(t)) for t in (str(names[submission.name]), submission.handed_in_as)),
            *cells,
        )
    return table


def _state(file: StudentFile | None, plan: Plan, id: str, is_late: bool) -> str:
    """Return the planned action for a problem of a submission, such as "again, late"."""
    if file is None:
        return ""
    if file.bad:
        state = "unclear"
    elif not file.is_submitted:
        return "-"
    elif id in plan.reasons:
        state = NEW if plan.reasons[id] == NEW else "again"
    else:
        state = "kept"
    return f"{state}, late" if is_late else state


def forecast_lines(forecast: Forecast) -> list[str]:
    """Return the lines of text to show below the table."""
    reasons = Counter(why for each in forecast.plans for why in each.reasons.values())
    names = people_of(forecast.kept)
    late = sorted({str(names[row]) for row, _ in forecast.late})
    unclear = [(each.submission.shown_name, _unclear(each)) for each in forecast.plans]
    lines = [line(f"{name}: {' '.join(what)}") for name, what in unclear if what]
    lines += [_would(text) for text in about_run(forecast.summary)]
    again = [p.submission.shown_name for p in forecast.plans if {*p.reasons.values()} - {NEW}]
    if again:
        lines.append(line(f"Would be graded again, so marks may change: {', '.join(again)}."))
    if late:
        lines.append(line(f"Late: {counted(len(late), 'submission')} ({', '.join(late)})."))
    of_each = ", ".join(f"{number} {why}" for why, number in reasons.most_common())
    graded = counted(forecast.summary.graded, "submission")
    lines.append(f"A run would grade {graded}{f' (problems: {of_each})' if of_each else ''}.")
    lines.append("This was a dry run: nothing was graded, and nothing was written.")
    return [*lines, *about_book(forecast.summary)]


def _would(text: str) -> str:
    return f"would change{text.removeprefix('changed')}" if text.startswith("changed: ") else text


def _unclear(plan: Plan) -> list[str]:
    """Return a submission's notes, and the reasons why some of its files can't be read."""
    files = plan.submission.files.values()
    reasons = [file.reason for file in files if file.reason and file.bad]
    notes = [note for note in plan.submission.notes if note != HANDED_IN_LATE]
    return [*notes, *dict.fromkeys(reasons)]
