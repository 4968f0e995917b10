"""Who is the same under two names: as `names.csv` says, or to be asked."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from grader.files import set_aside, write_whole
from grader.grade.previous import RESULTS, Previous, result_path, save_result
from grader.gradebook.roster import Known, Roster
from grader.intake.handed_in import Submission
from grader.intake.names_file import NAMES_FILE
from grader.intake.only import named
from grader.intake.result_names import result_name
from grader.reports.gradebook_csv import cell
from grader.result import SubmissionResult
from grader.text import quoted

SUGGESTED = "names-suggested.csv"
"""Lines for `names.csv` that may be right."""


def as_on_roster(submissions: Sequence[Submission], roster: Roster) -> list[Submission]:
    """Return submissions under the real names that the roster has for them."""
    if not roster.entries:
        return [*submissions]
    matched = roster.match(
        Known(each.identity, each.full_name, each.members) for each in submissions
    )
    named = [(each, matched.name(each.identity)) for each in submissions]
    return [
        replace(each, full_name=name, name=result_name(each.identity, name)) if name else each
        for each, name in named
    ]


def as_in_names_file(
    submissions: Sequence[Submission], previous: Previous, people: Mapping[str, str]
) -> tuple[list[Submission], list[str]]:
    """Return submissions as those whose they are by `names.csv`, and what could not be done.

    Args:
        submissions: what was handed in.
        previous: what previous runs left.
        people: for what a submission is called, or its identity, whose it is.
    """
    found, told = list(submissions), []
    here = {submission.identity for submission in submissions}
    for name, means in people.items():
        target = _meant(means, submissions, previous)
        if target is None:
            told.append(f"{NAMES_FILE}: nobody, or more than one, is called {quoted(means)}.")
            continue
        for each in named(submissions, name):
            if target.identity in here and target.identity != each.identity:
                both = f"{quoted(each.identity)} and {quoted(target.identity)}"
                told.append(f"{NAMES_FILE}: {both} both handed in, so they stay two.")
            else:
                here.add(target.identity)
                found[submissions.index(each)] = _as(each, target)
    return found, told


def _meant(means: str, submissions: Sequence[Submission], previous: Previous) -> Submission | None:
    """Return who is called so, among those who are known and those who handed in."""
    known = [_of_result(result) for result in previous.results.values()]
    found = {each.identity: each for each in [*named(submissions, means), *named(known, means)]}
    return next(iter(found.values())) if len(found) == 1 else None


def _of_result(result: SubmissionResult) -> Submission:
    name = result.submission
    return Submission(name, {}, identity=result.who, full_name=result.full_name)


def _as(submission: Submission, target: Submission) -> Submission:
    return replace(
        submission,
        identity=target.identity,
        full_name=target.full_name,
        name=result_name(target.identity, target.full_name),
    )


def also_known_as(previous: Previous, people: Mapping[str, str]) -> dict[str, list[str]]:
    """Return, for the names of results, what else these people are called by `names.csv`."""
    known = [*map(_of_result, previous.results.values())]
    found: dict[str, list[str]] = {}
    for name, means in people.items():
        whose = named(known, means)
        if len(whose) == 1:
            found.setdefault(whose[0].name, []).append(name)
    return found


def merge(previous: Previous, people: Mapping[str, str], out: Path | None) -> None:
    """Move results to those whose they are by `names.csv`; the old files are kept aside.

    Marks that somebody has already stay; nothing is put in their place.

    Args:
        previous: what previous runs left.
        people: for what a submission is called, or its identity, whose it is.
        out: the folder of reports; None to leave all files as they are.
    """
    for name, means in people.items():
        known = {each.identity: each for each in map(_of_result, previous.results.values())}
        own, target = known.get(name), _meant(means, [], previous)
        if own is None or target is None or own.identity == target.identity:
            continue
        old = previous.results.pop(own.name)
        result = previous.results[target.name]
        previous.joined[own.name] = result.shown_name
        ids = {problem.id for problem in result.problems if problem.sha256}  # of what is there
        new = [problem for problem in old.problems if problem.id not in ids and problem.id]
        kept = [p for p in result.problems if p.id not in {problem.id for problem in new}]
        result.problems = sorted([*kept, *new], key=lambda problem: problem.id)
        result.late = any(problem.late for problem in result.problems)
        if out is None:
            continue
        save_result(result, out / RESULTS)
        set_aside(result_path(out / RESULTS, own.name), "merged")
        _remove_views(own.name, out)


def _remove_views(name: str, out: Path) -> None:
    """Remove what is shown of a submission that is no row any more."""
    for folder in out.iterdir():
        if folder.is_dir() and folder.name != RESULTS:
            (folder / f"{name}.html").unlink(missing_ok=True)


def suggest(
    submissions: Sequence[Submission],
    previous: Previous,
    people: Mapping[str, str],
    out: Path | None,
) -> list[str]:
    """Write lines for `names.csv` about rows of one name that may be one person's.

    Moodle numbers people anew in each assignment, and somebody may have moved to another folder.
    Who has handed in the same problem under both names is two, and so is who has both now. The
    lines are written at each run until they are in `names.csv`, or show to be wrong.

    Args:
        submissions: what was handed in.
        previous: what previous runs left.
        people: what has been said already.
        out: the folder of reports; None to write nothing.
    """
    lines, unclear = _maybe_the_same(submissions, previous, people)
    if out is not None:
        _write_suggested(lines, out / SUGGESTED)
    told = []
    if lines:
        now, then = lines[0]
        who = f"{quoted(now.shown_name)} is {quoted(now.identity)} and {quoted(then.identity)}"
        told.append(
            f"Of one name, and perhaps the same: {len(lines)} (such as: {who}). If they are, put "
            f"the lines that a run writes to {SUGGESTED} into {NAMES_FILE}, and run this again."
        )
    for same in unclear:
        who = ", ".join(quoted(each.identity) for each in same)
        told.append(
            f"Called {quoted(same[0].shown_name)}, and it isn't clear which are the same: {who}. "
            f"Say so in {NAMES_FILE}."
        )
    return told


def _write_suggested(lines: Sequence[tuple[Submission, Submission]], path: Path) -> None:
    """Write who may be the same; remove the file where nobody is."""
    if not lines:
        path.unlink(missing_ok=True)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["found", "means", "name"])
    writer.writerows((now.identity, then.identity, cell(now.full_name)) for now, then in lines)
    write_whole(path, text.getvalue().encode("utf-8", "replace"))


def _maybe_the_same(
    submissions: Sequence[Submission], previous: Previous, people: Mapping[str, str]
) -> tuple[list[tuple[Submission, Submission]], list[list[Submission]]]:
    """Return who may be the same, each with whom, and those of one name who may only in part."""
    results = {result.who: result for result in previous.results.values()}
    here = {each.identity: each for each in submissions}
    known = {who: _of_result(result) for who, result in results.items()} | here
    did = {who: {p.id for p in results[who].problems} if who in results else set() for who in known}
    for who, each in here.items():
        did[who] |= {id for id, file in each.files.items() if file.is_there}
    lines, unclear = [], []
    for same in _by_name([each for who, each in known.items() if who not in people]).values():
        same.sort(key=lambda e: (e.identity not in results, sorted(did[e.identity]), e.identity))
        pairs = list(combinations(same, 2))
        may_be = [
            not (did[a.identity] & did[b.identity] or {a.identity, b.identity} <= here.keys())
            for a, b in pairs
        ]
        if all(may_be) and all(map(_is_safe, same)):
            lines += [(each, same[0]) for each in same[1:]]
        elif any(may_be):
            unclear.append(same)
    return sorted(lines, key=lambda pair: pair[0].identity), unclear


def _is_safe(submission: Submission) -> bool:
    """Tell whether a spreadsheet would show who it is, and nothing else."""
    return cell(submission.identity) == submission.identity


def _by_name(submissions: Sequence[Submission]) -> dict[str, list[Submission]]:
    found: dict[str, list[Submission]] = {}
    for each in submissions:
        name = " ".join(unicodedata.normalize("NFKC", each.shown_name).casefold().split())
        found.setdefault(name, []).append(each)
    return found
