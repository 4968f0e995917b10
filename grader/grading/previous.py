"""What earlier runs left in the folder of reports, and which of it still holds.

A problem's marks rest on a few things that its result names (`basis`): the student's file, the
tests, the grader, the seed and so on. While all of them are as they were, the marks are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from grader.files import write_whole
from grader.grading.provenance import basis
from grader.intake.submissions import Submission
from grader.result import ProblemResult, Status, SubmissionResult

RESULTS = "results"
_LOCK = ".lock"

_NEW = "new"
_FAULT = "the grader had failed"
_FRESH = "graded afresh"


def sweep(folder: Path) -> None:
    """Remove half-written files that a run left which was killed."""
    for pattern in (".*.part", "*/.*.part"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def save_result(result: SubmissionResult, folder: Path) -> Path:
    """Write `<submission>.json` into a folder, whole or not at all, and return its path."""
    path = folder / f"{result.submission}.json"
    write_whole(path, json.dumps(result.to_json(), indent=2, ensure_ascii=True) + "\n")
    return path


def load_results(folder: Path) -> dict[str, SubmissionResult]:
    """Return the results in a folder by name; a file that isn't one is no result."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        with suppress(OSError, ValueError, RecursionError):
            result = SubmissionResult.from_json(json.loads(path.read_text(encoding="utf-8")))
            if result.submission == path.stem:
                found[result.submission] = result
    return found


@dataclass
class Plan:
    """What to do about one submission.

    Attributes:
        submission: what was handed in.
        kept: the results that still hold, or of which nothing was handed in now, by problem id.
        because: for each other problem why it has to be graded.
    """

    submission: Submission
    kept: dict[str, ProblemResult] = field(default_factory=dict)
    because: dict[str, str] = field(default_factory=dict)


def plan(
    submission: Submission,
    earlier: SubmissionResult | None,
    grounds: dict[str, dict[str, str]],
    *,
    fresh: bool,
) -> Plan:
    """Return which problems of a submission have to be graded, and why.

    If it is for one problem only, what is known of the others is kept: there is nothing to grade
    them by.

    Args:
        submission: what was handed in.
        earlier: its result of an earlier run, if there is one.
        grounds: for each problem what its marks would rest on besides the student's file.
        fresh: whether to grade everything again.
    """
    found = Plan(submission)
    known = {problem.id: problem for problem in earlier.problems} if earlier else {}
    for id, ground in grounds.items():
        old = known.get(id)
        if id not in submission.files:
            found.kept |= {id: old} if old is not None else {}
            continue
        why = _why(old, basis(submission.files[id], ground))
        if earlier is not None and earlier.status == Status.INTERNAL:
            why = _FAULT
        if why or old is None:
            found.because[id] = why
        elif fresh:
            found.because[id] = _FRESH
        else:
            found.kept[id] = old
    return found


def _why(old: ProblemResult | None, wanted: dict[str, str]) -> str:
    """Return why an earlier result doesn't hold; empty if it does."""
    if old is None or not old.tests:
        return _NEW
    changed = [name for name, value in wanted.items() if old.basis.get(name) != value]
    return ", ".join(f"{name} changed" for name in changed)


def outdated(
    results: Iterable[SubmissionResult], grounds: dict[str, dict[str, str]]
) -> dict[str, list[str]]:
    """Return the problems with marks that no longer rest on what they would now, and on what.

    Args:
        results: of the whole class.
        grounds: for each problem what its marks would rest on besides the student's file.
    """
    changed: dict[str, set[str]] = {id: set() for id in grounds}
    for problem in (p for result in results for p in result.problems if p.id in grounds):
        now = grounds[problem.id]
        changed[problem.id] |= {name for name in now if problem.basis.get(name) != now[name]}
    return {id: sorted(names) for id, names in changed.items() if names}
