"""Describe the submissions of a run: the download, and entries that match no student."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grader.intake.handed_in import Submission
from grader.intake.layout import Layout
from grader.intake.problem_names import Problems
from grader.text import counted, quoted


def summary(layout: Layout, submissions: Sequence[Submission]) -> str:
    """Return one line about a platform's download."""
    students = sum(max(1, len(s.members)) for s in submissions)
    late = sum(s.late for s in submissions)
    unused = len(layout.unmatched) + sum(len(s.unused) for s in submissions)
    parts = [counted(students, "student")]
    if students != len(submissions):
        parts[0] += f" in {counted(len(submissions), 'submission')}"
    parts += [f"{late} late"] if late else []
    parts += [f"{counted(unused, 'file')} not used"] if unused else []
    return f"{layout.title}: {', '.join(parts)}."


def untold(submissions: Iterable[Submission], problems: Problems) -> str:
    """Return a hint if there are files that could be used if their problem were given."""
    count = sum(each.is_untold and not each.is_read for each in submissions)
    return have_untold_files(count, problems) if count and not problems.given else ""


def have_untold_files(count: int, problems: Problems) -> str:
    """Return the hint that this many submissions have such a file."""
    have = f"{counted(count, 'submission')} {'has' if count == 1 else 'have'}"
    return f"{have} a Python file that tells no problem. {name_it(problems)}."


def name_it(problems: Problems) -> str:
    """Return what to do about a file that tells no problem."""
    first = problems.known[0]
    return f"If this was handed in for one problem only, name it, such as --problem {first}"


def in_several(submissions: Iterable[Submission]) -> list[str]:
    """Return a sentence about each person with more than one submission."""
    works: dict[str, list[str]] = {}
    for submission in submissions:
        for member in submission.members:
            works.setdefault(member, []).append(quoted(submission.shown_name))
    return [
        f"{quoted(member)} is a member of {' and '.join(names)}; the gradebook has a row for each."
        for member, names in works.items()
        if len(names) > 1
    ]
