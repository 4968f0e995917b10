"""Combine the results that belong to one person according to `names.csv`, and suggest new lines.

The saved results do not change. Results are combined only in reports, so a line can be removed from
`names.csv` again.
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
    """Return the submissions with the full names from the roster.

    A Moodle group on the roster gets an identity from its members, because the group's number on
    Moodle identifies no student.
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
    """Add the members of a Moodle group to its submission if the roster lists them."""
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
    """Describes which results belong to the same person.

    Attributes:
        row_of: maps the name of a result to the name of the row that includes it. Results with
            their own row are left out.
        replaced: maps the name of a result to the ids of problems that no longer count in it,
            because the result of a larger group counts.
        also: maps the name of a row to other names and identities of the same person.
        unclear: a sentence for each line of `names.csv` that can't be applied.
    """

    row_of: Mapping[str, str]
    replaced: Mapping[str, Collection[str]]
    also: Mapping[str, Sequence[str]]
    unclear: Sequence[str]

    def rows(self, results: Iterable[SubmissionResult]) -> list[SubmissionResult]:
        """Combine the results of each person, and return one result for each row."""
        parts: dict[str, list[SubmissionResult]] = {}
        for result in sorted(results, key=lambda r: (r.submission in self.row_of, r.submission)):
            replaced = self.replaced.get(result.submission, ())
            if replaced:
                left = [problem for problem in result.problems if problem.id not in replaced]
                result = replace(result, problems=left)
            row = self.row_of.get(result.submission, result.submission)
            parts.setdefault(row, []).append(result)
        return [_combined(of_person) for of_person in parts.values()]


def same_people(
    results: Iterable[SubmissionResult], people: Mapping[str, str], roster: Roster
) -> SamePeople:
    """Determine which results belong to the same person according to `names.csv`.

    Args:
        results: the results of the whole class.
        people: the students in `names.csv`. It maps the cells of the column `found` to those of the
            column `means`.
        roster: the roster of the class.

    Raises:
        UsageError: a name in `names.csv` matches several people.
    """
    by_name = {result.submission: result for result in results}
    known = People([*by_name.values()], roster.match(map(author, by_name.values())), {})

    def rows_called(name: str) -> list[str]:
        """Return the names of all rows that a name matches."""
        return list(dict.fromkeys(_row(each.submission, row_of) for each in known.matches(name)))

    row_of: dict[str, str] = {}
    replaced: dict[str, set[str]] = {}
    also: defaultdict[str, list[str]] = defaultdict(list)
    unclear = []
    for name, means in people.items():
        targets = rows_called(means)
        if not targets:
            unclear.append(f"{NAMES_FILE}: there is no student called {quoted(means)}.")
            continue
        _require_one(means, [by_name[row] for row in targets])
        target = targets[0]
        also[target].append(name)
        others = [row for row in rows_called(name) if row != target]
        _require_one(name, [by_name[row] for row in others])
        for other in others:
            together = [by_name[n] for n in by_name if _row(n, row_of) in (other, target)]
            old, new = by_name[other], by_name[target]
            if _has_joined(old, new) and (both_did := _handed_in(old) & _handed_in(new)):
                # The other problems of the smaller group still count for its members.
                replaced[other] = both_did
                if _handed_in(old) - both_did:
                    continue
            if other not in replaced and _overlap(together) and not _is_renamed(old, new, roster):
                both = f"{quoted(by_name[other].who)} and {quoted(by_name[target].who)}"
                unclear.append(
                    f"{NAMES_FILE}: {both} submitted the same problem, so they were not combined."
                )
            else:
                row_of[other] = target
                also[target] += [by_name[other].who, *also.pop(other, [])]
    return SamePeople({n: _row(n, row_of) for n in row_of}, replaced, also, unclear)


def _require_one(name: str, rows: Sequence[SubmissionResult]) -> None:
    if len(rows) > 1:
        whose = " and ".join(sorted(row.who for row in rows))
        raise UsageError(
            f"{NAMES_FILE}: {quoted(name)} may refer to {whose}. Write one of these identities "
            f"instead."
        )


def _row(name: str, row_of: Mapping[str, str]) -> str:
    while name in row_of:
        name = row_of[name]
    return name


def _overlap(results: Iterable[SubmissionResult]) -> bool:
    """Return whether at least two of the results have a file for the same problem."""
    handed_in = [id for result in results for id in _handed_in(result)]
    return len(handed_in) > len(set(handed_in))


def _has_joined(old: SubmissionResult, new: SubmissionResult) -> bool:
    """Return whether the group of `new` has all members of `old`'s group and at least one more."""
    return bool(old.members) and {*old.members} < {*new.members}


def _is_renamed(old: SubmissionResult, new: SubmissionResult, roster: Roster) -> bool:
    """Return whether `old` and `new` may be results of one student with a renamed account.

    They must have the same name and platform, and the roster must contain the name exactly once.
    Canvas accounts keep their number, so the function returns False for them.
    """
    platforms = {result.who.partition(":")[0] for result in (old, new)}
    is_same = _called(old) == _called(new) and len(platforms) == 1 and len(new.members) < 2
    return is_same and roster.has_one(new.full_name) and not _are_of_canvas(old, new)


def _are_of_canvas(*results: SubmissionResult) -> bool:
    """Return whether all results are from Canvas, where the number of a user never changes."""
    return all(result.who.startswith("canvas:") for result in results)


def _called(result: SubmissionResult) -> str:
    return " ".join(unicodedata.normalize("NFKC", result.shown_name).casefold().split())


def _handed_in(result: SubmissionResult) -> set[str]:
    """Return the ids of the problems with a file that could be read."""
    return {problem.id for problem in result.problems if problem.sha256}


def _combined(results: Sequence[SubmissionResult]) -> SubmissionResult:
    """Combine the results of one person. For each problem, prefer a result with a readable file."""
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


# Suggestions for names.csv


def suggested_lines(
    rows: Iterable[SubmissionResult],
    here: Collection[str],
    people: Mapping[str, str],
    roster: Roster,
) -> list[str]:
    """Suggest lines for `names.csv` about rows that may belong to the same person or group.

    One person can have several rows, because Moodle uses new numbers in each assignment, and a
    folder can be renamed. Two rows belong to different people if both have a file for the same
    problem, or if both have a current submission. There are two exceptions: a student who joined a
    group, and a student on the roster whose account was renamed.

    Args:
        rows: the rows of the whole class.
        here: the names of the current submissions.
        people: the students that `names.csv` already lists.
        roster: the roster of the class.
    """
    rows = [row for row in rows if row.who not in people]
    lines, unclear = _suggestions_for_groups(rows, here, roster), []
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
                f"Several rows are called {quoted(same[0].shown_name)}: {who}. List those of the "
                f"same student in {NAMES_FILE}."
            )
    if lines:
        lines = [
            f"Rows that may belong to the same student or group: {len(lines)}. Copy the correct "
            f"lines to {NAMES_FILE}, below the line found,means,name, and run this command again:",
            *sorted(lines),
        ]
    return [*lines, *unclear]


def _suggestions_for_groups(
    rows: Sequence[SubmissionResult], here: Collection[str], roster: Roster
) -> list[str]:
    """Suggest a line for each earlier row that may belong to the same group as a current row."""
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
    by_name: defaultdict[str, list[SubmissionResult]] = defaultdict(list)
    for row in rows:
        by_name[_called(row)].append(row)
    return [same for same in by_name.values() if len(same) > 1]
