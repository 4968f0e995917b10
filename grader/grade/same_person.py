"""Combine several results of one person by `names.csv`, or ask about them.

Each result stays as it was graded. Results are combined only in reports, so a line of `names.csv`
can be removed again.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from grader.csv_table import csv_line
from grader.errors import UsageError
from grader.gradebook.people import People, author
from grader.gradebook.roster import Known, Roster
from grader.intake.handed_in import Submission
from grader.intake.identity import result_name
from grader.intake.names_file import NAMES_FILE
from grader.result import Isolation, ProblemResult, SubmissionResult
from grader.text import cell, quoted


def as_on_roster(submissions: Sequence[Submission], roster: Roster) -> list[Submission]:
    """Return submissions under the real names that the roster has for them.

    Moodle's groups are identified by their members, as a group's number is no participant's.
    """
    if not roster.entries:
        return [*submissions]
    submissions = [_with_members(each, roster) for each in submissions]
    matched = roster.match(Known(e.identity, e.full_name, e.members) for e in submissions)
    named = [(each, matched.name(each.identity)) for each in submissions]
    return [
        replace(each, full_name=name, name=result_name(each.identity, name)) if name else each
        for each, name in named
    ]


def _with_members(submission: Submission, roster: Roster) -> Submission:
    """Return the submission of a group of Moodle with its members, if they are known."""
    is_moodle = submission.identity.startswith("moodle:")
    entries = roster.group(submission.full_name) if is_moodle else []
    if not entries:
        return submission
    members = tuple(sorted(entry.member for entry in entries))
    identity = f"moodle:{'+'.join(members)}"
    name = result_name(identity, submission.full_name)
    return replace(submission, identity=identity, members=members, name=name)


@dataclass(frozen=True)
class SamePeople:
    """Which results belong together.

    Attributes:
        row_of: for a result that belongs to another one's row, the name of that one.
        replaced: for a result, the problems in which the result of a larger group counts instead.
        also: the other names of a row's person, by the name of the row.
        unclear: the lines of `names.csv` that can't be applied, and why.
    """

    row_of: Mapping[str, str]
    replaced: Mapping[str, Collection[str]]
    also: Mapping[str, Sequence[str]]
    unclear: Sequence[str]

    def rows(self, results: Iterable[SubmissionResult]) -> list[SubmissionResult]:
        """Return results, with those of one person combined."""
        parts: dict[str, list[SubmissionResult]] = {}
        for result in sorted(results, key=lambda r: (r.submission in self.row_of, r.submission)):
            gone = self.replaced.get(result.submission, ())
            if gone:
                left = [problem for problem in result.problems if problem.id not in gone]
                result = replace(result, problems=left)
            row = self.row_of.get(result.submission, result.submission)
            parts.setdefault(row, []).append(result)
        return [_as_one(own) for own in parts.values()]


def same_people(
    results: Iterable[SubmissionResult], people: Mapping[str, str], roster: Roster
) -> SamePeople:
    """Return which results belong together by `names.csv`.

    Args:
        results: the results of the whole class.
        people: the identity by a submission's name or other identity, from `names.csv`.
        roster: the roster of the class.

    Raises:
        UsageError: a name may belong to several people.
    """
    by_name = {result.submission: result for result in results}
    known = People([*by_name.values()], roster.match(map(author, by_name.values())), {})

    def rows_called(name: str) -> list[str]:
        """Return the names of all rows that a name may mean."""
        return list(dict.fromkeys(_row(each.submission, row_of) for each in known.meant(name)))

    row_of: dict[str, str] = {}
    replaced: dict[str, set[str]] = {}
    also: defaultdict[str, list[str]] = defaultdict(list)
    unclear = []
    for name, means in people.items():
        targets = rows_called(means)
        if not targets:
            unclear.append(f"{NAMES_FILE}: nobody is called {quoted(means)}.")
            continue
        _require_one(means, [by_name[row] for row in targets])
        target = targets[0]
        also[target].append(name)
        others = [row for row in rows_called(name) if row != target]
        _require_one(name, [by_name[row] for row in others])
        for own in others:
            together = [by_name[n] for n in by_name if _row(n, row_of) in (own, target)]
            old, new = by_name[own], by_name[target]
            if _has_joined(old, new) and (both_did := _handed_in(old) & _handed_in(new)):
                # What else the smaller group did stays with its members.
                replaced[own] = both_did
                if _handed_in(old) - both_did:
                    continue
            if own not in replaced and _are_two(together) and not _is_renamed(old, new, roster):
                both = f"{quoted(by_name[own].who)} and {quoted(by_name[target].who)}"
                unclear.append(f"{NAMES_FILE}: {both} both handed in, so they stay two.")
            else:
                row_of[own] = target
                also[target] += [by_name[own].who, *also.pop(own, [])]
    return SamePeople({n: _row(n, row_of) for n in row_of}, replaced, also, unclear)


def _require_one(name: str, rows: Sequence[SubmissionResult]) -> None:
    if len(rows) > 1:
        whose = " and ".join(sorted(row.who for row in rows))
        raise UsageError(
            f"{NAMES_FILE}: {quoted(name)} may be {whose}. Write one of these identities instead."
        )


def _row(name: str, row_of: Mapping[str, str]) -> str:
    while name in row_of:
        name = row_of[name]
    return name


def _are_two(results: Iterable[SubmissionResult]) -> bool:
    """Return whether several of the results have a file for the same problem."""
    handed_in = [id for result in results for id in _handed_in(result)]
    return len(handed_in) > len(set(handed_in))


def _has_joined(old: SubmissionResult, new: SubmissionResult) -> bool:
    """Return whether one group has all members of another one, and more."""
    return bool(old.members) and {*old.members} < {*new.members}


def _is_renamed(old: SubmissionResult, new: SubmissionResult, roster: Roster) -> bool:
    """Return whether two results are of one name on one platform, and one student has it."""
    platforms = {result.who.partition(":")[0] for result in (old, new)}
    is_same = _called(old) == _called(new) and len(platforms) == 1 and len(new.members) < 2
    return is_same and roster.has_one(new.full_name) and not _are_of_canvas(old, new)


def _are_of_canvas(*results: SubmissionResult) -> bool:
    """Return whether all are users of Canvas, whose numbers never change."""
    return all(result.who.startswith("canvas:") for result in results)


def _called(result: SubmissionResult) -> str:
    return " ".join(unicodedata.normalize("NFKC", result.shown_name).casefold().split())


def _handed_in(result: SubmissionResult) -> set[str]:
    """Return the problems of which a file was read."""
    return {problem.id for problem in result.problems if problem.sha256}


def _as_one(results: Sequence[SubmissionResult]) -> SubmissionResult:
    """Return the results of one person as one. A file that was read goes before none."""
    first, *others = results
    if not others:
        return first
    problems: dict[str, ProblemResult] = {}
    for problem in (problem for result in results for problem in result.problems):
        if problem.id not in problems or (problem.sha256 and not problems[problem.id].sha256):
            problems[problem.id] = problem
    levels = {result.isolation for result in results}
    return replace(
        first,
        isolation=Isolation.PROCESS if Isolation.PROCESS in levels else first.isolation,
        problems=sorted(problems.values(), key=lambda problem: problem.id),
        notes=list(dict.fromkeys(note for result in results for note in result.notes)),
        late=any(problem.late for problem in problems.values()),
    )


# Who may be the same


def perhaps_the_same(
    rows: Iterable[SubmissionResult],
    here: Collection[str],
    people: Mapping[str, str],
    roster: Roster,
) -> list[str]:
    """Return lines for `names.csv` about rows that may be one person's or one group's.

    Moodle gives people new numbers in each assignment, and a student may have moved to another
    folder. Two names that have a file for the same problem, or that both have a current submission,
    are different people. Exceptions are a student who joined a group and a renamed account on the
    roster.

    Args:
        rows: of the whole class.
        here: the names of the current submissions.
        people: the known lines of `names.csv`.
        roster: the roster of the class.
    """
    rows = [row for row in rows if row.who not in people]
    lines, unclear = _followed(rows, here, roster), []
    for same in _by_name(rows):
        same.sort(key=lambda row: (row.submission in here, sorted(_handed_in(row)), row.who))
        may_be = [
            not (_handed_in(a) & _handed_in(b) or {a.submission, b.submission} <= {*here})
            and not _are_of_canvas(a, b)
            for a, b in combinations(same, 2)
        ]
        if all(may_be) and all(cell(row.who) == row.who for row in same):
            lines += [_line(row, same[0]) for row in same[1:]]
        elif any(may_be):
            who = ", ".join(quoted(row.who) for row in same)
            unclear.append(
                f"Called {quoted(same[0].shown_name)}, and it isn't clear which are the same: "
                f"{who}. Say so in {NAMES_FILE}."
            )
    if lines:
        lines = [
            f"Of one name or group, and perhaps the same: {len(lines)}. Copy the lines that are "
            f"right into {NAMES_FILE}, below found,means,name, and run this again:",
            *sorted(lines),
        ]
    return [*lines, *unclear]


def _followed(rows: Sequence[SubmissionResult], here: Collection[str], roster: Roster) -> list[str]:
    """Return a line for each earlier row that a new row with the same problems may continue."""
    now = [row for row in rows if row.submission in here]
    before = [row for row in rows if row.submission not in here]
    return [
        _line(old, new)
        for new in now
        for old in before
        if _handed_in(old) & _handed_in(new)
        if _has_joined(old, new) or _is_renamed(old, new, roster)
    ]


def _line(row: SubmissionResult, of: SubmissionResult) -> str:
    return csv_line([row.who, of.who, row.full_name])


def _by_name(rows: Iterable[SubmissionResult]) -> list[list[SubmissionResult]]:
    found: defaultdict[str, list[SubmissionResult]] = defaultdict(list)
    for row in rows:
        found[_called(row)].append(row)
    return [same for same in found.values() if len(same) > 1]
