"""What counts in the end: the marks that tests gave, with corrections and the late policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grader.book import corrections, late_policy
from grader.book.corrections import Correction, Followed, follow, not_followed, read_corrections
from grader.book.late_policy import Extension, LatePolicy, read_late_policy
from grader.book.people import People, nearly
from grader.result import ProblemResult, Status, SubmissionResult, total
from grader.text import counted, quoted


def adjusted(
    results: Iterable[SubmissionResult], folder: Path
) -> tuple[list[SubmissionResult], list[str]]:
    """Return results with what the folder's files change in them, and remarks on these files.

    Adjustments are set afresh: what stood there goes, so that the same call changes nothing more.
    What tests gave is as it was. The results that are given are left alone.

    Args:
        results: of the whole class.
        folder: of the reports, where `corrections.csv` and `late.toml` may be.

    Raises:
        UsageError: one of the files can't be read, or the late policy is not understood.
    """
    results = list(results)
    lines, remarks = read_corrections(folder / corrections.FILE)
    policy = read_late_policy(folder / late_policy.FILE)
    people = People(results)
    told: dict[str, None] = dict.fromkeys(remarks)
    by_person = _by_person(lines, results, people, told)
    extended = _extended(policy, people, told)
    found = []
    unclear: list[str] = []
    for result in results:
        own = by_person[result.submission] + by_person[corrections.EVERYBODY]
        problems = []
        for problem in result.problems:
            theirs = extended.get(result.submission, {})
            new, is_unclear = _adjusted(problem, own, policy, theirs, told)
            unclear += [f"{result.shown_name} ({problem.id[:2]})"] * is_unclear
            problems.append(new)
        found.append(replace(result, problems=problems))
    if unclear:
        told[_unclear(unclear)] = None
    return found, list(told) if results else []


def _adjusted(
    problem: ProblemResult,
    lines: Sequence[Correction],
    policy: LatePolicy | None,
    extended: Mapping[str, Extension],
    told: dict[str, None],
) -> tuple[ProblemResult, bool]:
    """Return a problem with its adjustments, and whether it is unclear what lateness costs."""
    if any(test.status is Status.INTERNAL for test in problem.tests):
        return replace(problem, adjustments=[]), False
    concerned = [line for line in lines if line.concerns(problem) and line.tests(problem)]
    followed = follow(problem, concerned, told) if concerned else Followed()
    found = [*followed.adjustments]
    if policy is None or followed.final:
        return replace(problem, adjustments=found), False
    points = max(0.0, total([problem.earned, *(a.points for a in found)]))
    late = policy.deduction(problem, points, extended)
    is_unclear = points > 0 and policy.is_unclear(problem, extended)
    return replace(problem, adjustments=[*found, *([late] if late else [])]), is_unclear


def _by_person(
    lines: Iterable[Correction],
    results: Sequence[SubmissionResult],
    people: People,
    told: dict[str, None],
) -> dict[str, list[Correction]]:
    """Return corrections by the name of the submission that is meant; `*` stays as it is."""
    found: dict[str, list[Correction]] = defaultdict(list)
    for line in lines:
        meant = results if line.for_everybody else people.meant(line.submission)
        why = "" if line.for_everybody else people.why_nobody(line.submission)
        why = why or _why_nothing(line, meant)
        if why:
            told[not_followed(line.line, why)] = None
        else:
            key = corrections.EVERYBODY if line.for_everybody else meant[0].submission
            found[key].append(line)
    return found


def _why_nothing(line: Correction, meant: Iterable[SubmissionResult]) -> str:
    """Return why a line is about nothing that somebody was graded in; empty if it is."""
    problems = [p for result in meant for p in result.problems if line.concerns(p)]
    if not problems:
        whose = "nobody has" if line.for_everybody else f"{quoted(line.submission)} has not"
        return f"{whose} been graded in {quoted(line.problem)}"
    if any(line.tests(problem) for problem in problems):
        return ""
    names = dict.fromkeys(name for t in problems[0].tests for name in (t.name, t.id))
    return f"{problems[0].id} has no test {quoted(line.test)}{nearly(line.test, names)}"


def _extended(
    policy: LatePolicy | None, people: People, told: dict[str, None]
) -> dict[str, Mapping[str, Extension]]:
    """Return extensions by the name of the submission that is meant."""
    found: dict[str, Mapping[str, Extension]] = {}
    for name, extensions in policy.extensions.items() if policy else ():
        why = people.why_nobody(name)
        if why:
            told[f"{late_policy.FILE}: this extension does not count: {why}."] = None
        else:
            found[people.meant(name)[0].submission] = extensions
    return found


def _unclear(names: Sequence[str]) -> str:
    number = counted(len(names), "file")
    return (
        f"{number} came late, and nothing is taken for it: it isn't known how late, and "
        f"{late_policy.FILE} says no share ('flagged') that is right for this: {', '.join(names)}."
    )
