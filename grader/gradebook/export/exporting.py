"""Export marks into a platform's file, with feedback in an archive."""

from __future__ import annotations

from collections.abc import Sequence

from grader.errors import UsageError
from grader.files import write_together
from grader.gradebook.adjusting import adjusted, match_roster, require_followed
from grader.gradebook.export import canvas_gradebook, moodle_worksheet, others
from grader.gradebook.export.feedback_archive import Pack, for_canvas, for_moodle
from grader.gradebook.export.filling import Filled, fill
from grader.gradebook.export.marks import marks_of
from grader.gradebook.export.sheet import Order
from grader.gradebook.export.table import read_table
from grader.gradebook.who_is_meant import People
from grader.result import SubmissionResult
from grader.text import counted, quoted

PLATFORMS = {
    "canvas": canvas_gradebook.PLATFORM,
    "moodle": moodle_worksheet.PLATFORM,
    "gradescope": others.GRADESCOPE,
    "csv": others.PLAIN,
}
"""By the names that one gives them on the command line."""


def export_from(
    order: Order, results: Sequence[SubmissionResult], unreadable: Sequence[str] = ()
) -> list[str]:
    """Fill marks into a platform's file and return messages.

    Args:
        order: the request.
        results: all stored results.
        unreadable: names of submissions with damaged results.

    Raises:
        UsageError: file, marks, book and options do not fit; nothing is written.
        CannotWrite: a file can't be written; no file is.
    """
    _require_sense(order, results)
    require_followed(results, order.book, order.also)
    now, remarks = adjusted(results, order.book, order.also)
    filled = _filled(order, now)
    pack = _packed(order, filled)
    contents = {order.out: filled.content}
    if pack and order.feedback:
        contents[order.feedback] = pack.zipped()
    write_together(contents)
    told = [*filled.told, *remarks, *_newer(results, now)]
    if unreadable:
        told.append(f"Their results can't be read, so grade them again: {', '.join(unreadable)}.")
    told.append(f"Written: {order.out}.")
    if pack and order.feedback:
        files = counted(len(pack.files), "file")
        told += [*pack.told, f"Feedback, {files}: {order.feedback}."]
    return told


def _require_sense(order: Order, results: Sequence[SubmissionResult]) -> None:
    """Reject impossible requests before reading.

    Raises:
        UsageError: always with the reason.
    """
    if order.platform not in PLATFORMS:
        names = ", ".join(PLATFORMS)
        raise UsageError(f"{quoted(order.platform)} is no platform known here; there are: {names}.")
    if not results:
        raise UsageError(f"There are no results in {order.folder}. Grade first, or say --reports.")
    if order.feedback and order.platform not in ("canvas", "moodle"):
        raise UsageError(f"Feedback can be packed for canvas and moodle, not {order.platform}.")
    if order.feedback and order.feedback.resolve() == order.out.resolve():
        raise UsageError(f"Marks and feedback can't both be {order.out}. Say another --out.")
    if order.platform == "canvas" and order.feedback and not order.download:
        raise UsageError(
            "Canvas knows feedback by the names in its download of submissions: say --download."
        )


def _filled(order: Order, results: Sequence[SubmissionResult]) -> Filled:
    platform = PLATFORMS[order.platform]
    try:
        data = order.file.read_bytes()
    except OSError as error:
        raise UsageError(f"{order.file} can't be read: {error.strerror}.") from None
    sheet = platform.sheet(read_table(data, order.file.name), order)
    marks = marks_of(results, order.problem, order.part)
    people = People(results, match_roster(results, order.book), order.also)
    return fill(platform, sheet, marks, order, people)


def _packed(order: Order, filled: Filled) -> Pack | None:
    pages = order.folder / "feedback"
    if order.feedback is None:
        return None
    if order.download is not None and order.platform == "canvas":
        return for_canvas(filled.rows, pages, order.download)
    return for_moodle(filled.rows, pages)


def _newer(before: Sequence[SubmissionResult], now: Sequence[SubmissionResult]) -> list[str]:
    """Return a message if the book changed since the last run."""
    names = [new.shown_name for old, new in zip(before, now, strict=True) if old != new]
    if not names:
        return []
    return [
        "These marks are as corrections and late policy say now; gradebook and feedback are not "
        f"yet. Run `grader grade` once more for them: {', '.join(names)}."
    ]
