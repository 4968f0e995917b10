"""Write marks to a platform's file, and feedback to an archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.csv_table import parse_table
from grader.errors import UsageError
from grader.files import write_together
from grader.gradebook.adjusting import ClassBook
from grader.gradebook.export.feedback_archive import feedback_archive
from grader.gradebook.export.filling import fill, marks_of
from grader.gradebook.export.sheet import PLATFORMS, any_csv, read_sheet
from grader.gradebook.folder import GradebookFolder
from grader.result import SubmissionResult
from grader.text import quoted

_WITH_FEEDBACK = ("canvas", "moodle")


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A request to export marks.

    Attributes:
        platform: the name of the platform.
        file: the downloaded file. It is not changed unless `out` is the same file.
        folder: the folder of the reports.
        book: the instructor's files.
        out: the file to write.
        problem: the id of the problem; empty for the sum of all required problems.
        column: the name or the id of the column for the marks; may be empty.
        new_column: the name of a column to add.
        id_column: the column that identifies students, for the platform `csv`.
        feedback: the archive for feedback; None for no archive.
        download: Canvas's download of submissions, whose file names are used in the archive.
        also: maps the name of a submission to other identities of its student.
    """

    platform: str
    file: Path
    folder: Path
    book: GradebookFolder
    out: Path
    problem: str = ""
    column: str = ""
    new_column: str = ""
    id_column: str = ""
    feedback: Path | None = None
    download: Path | None = None
    also: Mapping[str, Sequence[str]] = field(default_factory=dict)


def export_from(
    request: ExportRequest, results: Sequence[SubmissionResult], unreadable: Sequence[str] = ()
) -> list[str]:
    """Write marks to a platform's file, and return messages.

    Args:
        request: the request.
        results: all stored results.
        unreadable: names of submissions with damaged results.

    Raises:
        UsageError: the file, the marks, the instructor's files or the options contradict each
            other. No file was written.
        CannotWrite: one of the files can't be written. No file was changed.
    """
    _require_possible(request, results)
    book = ClassBook(results, request.book, request.also)
    book.require_effect()
    try:
        table = parse_table(request.file.read_bytes(), request.file.name, any_encoding=True)
    except OSError as error:
        raise UsageError(f"{request.file} can't be read: {error.strerror}.") from None
    platform = PLATFORMS.get(request.platform) or any_csv(request.id_column)
    sheet = read_sheet(platform, table, request.column, request.new_column)
    filled = fill(sheet, marks_of(book.results, request.problem), book.people)
    contents = {request.out: sheet.table.encoded()}
    messages = [*filled.messages(), *book.messages, *_newer(results, book.results)]
    if unreadable:
        names = ", ".join(unreadable)
        messages.append(f"Grade these submissions again, as their results can't be read: {names}.")
    messages.append(f"Written: {request.out}.")
    if request.feedback:
        pages, download = request.folder / "feedback", request.download
        download = download if request.platform == "canvas" else None
        contents[request.feedback], about = feedback_archive(filled.rows, pages, download)
        messages += [*about, f"Written: {request.feedback}."]
    write_together(contents)
    return messages


def _require_possible(request: ExportRequest, results: Sequence[SubmissionResult]) -> None:
    """Check that the request is possible, before any file is read.

    Raises:
        UsageError: the request is impossible.
    """
    platforms = [*PLATFORMS, "csv"]
    if request.platform not in platforms:
        names = ", ".join(platforms)
        raise UsageError(
            f"{quoted(request.platform)} is an unknown platform. Choose one of: {names}."
        )
    if not results:
        raise UsageError(
            f"There are no results in {request.folder}. Grade first, or use --reports."
        )
    if request.feedback and request.platform not in _WITH_FEEDBACK:
        raise UsageError(
            f"Feedback can be packed for canvas and moodle, but not for {request.platform}."
        )
    if request.feedback and request.feedback.resolve() == request.out.resolve():
        raise UsageError(
            f"Marks and feedback can't both be written to {request.out}. Choose another --out."
        )
    if request.platform == "canvas" and request.feedback and not request.download:
        raise UsageError(
            "Canvas needs the file names of its download of submissions to match feedback with "
            "students. Add --download with the path of this download."
        )
    if request.platform == "csv" and not request.id_column:
        raise UsageError(
            "The column that identifies the students is unknown. Name it with --id-column."
        )


def _newer(before: Sequence[SubmissionResult], now: Sequence[SubmissionResult]) -> list[str]:
    """Return a message if the instructor's files have changed marks since the last run."""
    names = [new.shown_name for old, new in zip(before, now, strict=True) if old != new]
    if not names:
        return []
    return [
        "The exported marks contain new corrections or deductions; the gradebook and the feedback "
        f"do not. Run `grader grade` again to update these students: {', '.join(names)}."
    ]
