"""How student code was kept apart when it was graded, in the words of every report."""

from __future__ import annotations

from collections.abc import Iterable

from grader.result import Isolation, SubmissionResult

NOT_CONFINED = (
    "NOT IN A SANDBOX: students' code could read and change whatever you can, these marks included."
)

_FOR_STUDENTS = {
    Isolation.SANDBOX: "Graded in a sandbox.",
    Isolation.PROCESS: (
        "Graded without a sandbox: code that was handed in could read and change files of the "
        "computer that graded it, and so these marks."
    ),
    None: "",
}


def not_confined(results: Iterable[SubmissionResult]) -> list[str]:
    """Return the submissions whose code, in any problem, was not in a sandbox."""
    return sorted(r.submission for r in results if r.isolation == Isolation.PROCESS)


def for_students(result: SubmissionResult) -> str:
    """Return the sentence for a student; empty when the grader failed before any code ran."""
    return _FOR_STUDENTS[result.isolation]


def for_instructors(result: SubmissionResult) -> str:
    """Return the level, and what it means where it is not the sandbox."""
    level = result.isolation or ""
    return f"{level}. {NOT_CONFINED}" if level == Isolation.PROCESS else str(level)
