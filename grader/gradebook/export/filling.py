"""Write the marks of a class to a platform's file, and report the changes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from grader.errors import UsageError
from grader.gradebook.export.sheet import Sheet, SheetPerson
from grader.gradebook.people import People
from grader.gradebook.roster import squeezed
from grader.result import Status, SubmissionResult, shown, total
from grader.text import counted, parse_number, quoted, some

_SUCH_AS = 3

_OTHER_NUMBERS = (
    "Moodle gives students new numbers in each assignment. {person.name} is on Moodle's list and "
    "in the results. If this is the same student, add a line to names.csv: "
    "{person.keys[0]},{identity}"
)

_NUMBERS_OF_GROUPS = (
    "If these are the numbers of groups, save Moodle's list of participants, with its column "
    "Groups, as roster.csv in the book, and grade again. Then the members get the "
    "mark of their group."
)

_HIDDEN_NAME = "participant"
"""If an assignment hides the names of students, all names begin with this word."""


class Mark(NamedTuple):
    """The points of a student, and the maximum of these points."""

    points: float
    max: float


@dataclass(frozen=True)
class Marks:
    """The marks of a class for one problem, or for all required problems together.

    Attributes:
        what: the id of the problem, such as `03-some-name`, or "total".
        most: the maximum of a mark.
        of: maps the name of each submission to the mark.
        results: maps the name of each submission to its result.
        messages: messages about missing marks and about problems that count 0.
    """

    what: str
    most: float
    of: Mapping[str, Mark]
    results: Mapping[str, SubmissionResult]
    messages: Sequence[str]


def marks_of(results: Iterable[SubmissionResult], problem: str) -> Marks:
    """Return the marks of a problem, or the sum of all required problems.

    Args:
        results: the adjusted results.
        problem: the id of a problem. If it is empty, return the sum of all required problems, in
            which a missing problem counts 0.

    Raises:
        UsageError: no student has been graded in the problem.
    """
    results = sorted((r.without_skipped() for r in results), key=lambda r: r.submission)
    worth = _worth([r for r in results if r.status != Status.INTERNAL], problem)
    if problem and not worth:
        raise UsageError(f"No student in these reports has been graded in {problem}.")
    what = problem or "total"
    marks: dict[str, Mark] = {}
    remarks: defaultdict[str, list[str]] = defaultdict(list)
    for result in results:
        if result.status == Status.INTERNAL:
            remarks["The grader failed, so there is no mark"].append(called(result))
            continue
        counted_problems = {each.id: each for each in result.problems if each.id in worth}
        missing = [id for id in worth if id not in counted_problems]
        for id in missing:
            remark = f"Not graded in {id}{'' if problem else ', which counts 0'}"
            remarks[remark].append(called(result))
        points = total(each.points for each in counted_problems.values())
        most = total(
            counted_problems[id].max if id in counted_problems else worth[id] for id in worth
        )
        if not most:
            remarks[f"All tests of {what} were left out, so there is no mark"].append(
                called(result)
            )
        elif not (problem and missing):
            marks[result.submission] = Mark(points, most)
    messages = [f"{remark}: {', '.join(names)}." for remark, names in remarks.items()]
    by_name = {result.submission: result for result in results}
    return Marks(what, total(worth.values()), marks, by_name, messages)


def _worth(results: Iterable[SubmissionResult], problem: str) -> dict[str, float]:
    """Map the id of each problem that counts for the mark to its maximum."""
    worth: dict[str, float] = {}
    for each in (each for result in results for each in result.problems):
        if each.id == problem or not (problem or each.optional):
            worth[each.id] = max(worth.get(each.id, 0.0), each.max)
    return dict(sorted(worth.items()))


def called(result: SubmissionResult) -> str:
    """Return the name of a student, followed by the identity if it differs."""
    name = result.shown_name
    return f"{name} ({result.identity})" if result.identity not in ("", name) else name


def fill(sheet: Sheet, marks: Marks, people: People) -> Filling:
    """Write marks to one column of a platform's file.

    Args:
        sheet: the file.
        marks: the marks.
        people: the students of the class.

    Raises:
        UsageError: the marks and the file have different maxima or no student in common.
    """
    _require_same_maximum(sheet, marks)
    work = Filling(sheet, marks)
    lines = defaultdict(set)
    for person in sheet.people:
        for key in person.keys:
            lines[key].add(person.row.line)
    for person in sheet.people:
        owners = dict.fromkeys(name for key in person.keys for name in people.owners(key))
        work.in_file.update(owners)
        same = sorted({line for key in person.keys for line in lines[key]})
        if len(same) > 1:
            work.refuse_repeated(person, same)
        else:
            work.fill_in(person, [*owners])
    if sheet.worth:
        sheet.write(sheet.worth, marks.most)
    work.lost_zeros = _lost_zeros(sheet, people)
    if not work.in_file:
        raise UsageError(" ".join([work.no_known_student(), *work.lost_zeros]))
    return work


def _require_same_maximum(sheet: Sheet, marks: Marks) -> None:
    """Raise UsageError if the marks and the file have different maxima."""
    other = sorted({each.most for each in sheet.people if each.most is not None} - {marks.most})
    if other:
        differ = any(mark.max != marks.most for mark in marks.of.values())
        worth = f"{'up to ' if differ else ''}{shown(marks.most)}"
        raise UsageError(
            f"{marks.what} is worth {worth} points here, but {shown(other[0])} in "
            f"{sheet.table.name}. Change it there, and download the file again."
        )


def _lost_zeros(sheet: Sheet, people: People) -> list[str]:
    """Return a question to the instructor if ids in the file may lack leading zeros."""
    whole: dict[str, list[str]] = {}
    for name in people.known_names():
        whole.setdefault(name.lstrip("0"), []).append(name)
    keys = [key for person in sheet.people for key in person.keys if not people.matches(key)]
    lost = [(whole[key][0], key) for key in keys if len(whole.get(key, ())) == 1]
    if not lost:
        return []
    meant = some([f"{full} by {key}" for full, key in lost], _SUCH_AS)
    return [
        f"Did you mean {meant}? {sheet.table.name} lacks leading zeros. Format the column of ids "
        "as text and save the file again."
    ]


@dataclass
class Filling:
    """A platform's file with marks, and remarks about them.

    Attributes:
        sheet: the file.
        marks: the marks.
        in_file: the names of all submissions that the file mentions.
        rows: the rows of known students, each with the name of their submission.
        new: the number of written marks.
        same: the number of cells that already contained the same mark.
        changed: a message for each cell in which another mark was replaced.
        locked: a message for each mark that can't be changed.
        refused: messages about rows that were not filled in. They are the keys of the dict. Its
            values are not used.
        lacking: the students in the file who have no mark.
        is_of_group: whether an id in the file may identify a group instead of a student.
        lost_zeros: a question about ids that may lack leading zeros.
    """

    sheet: Sheet
    marks: Marks
    in_file: set[str] = field(default_factory=set)
    rows: list[tuple[SheetPerson, str]] = field(default_factory=list)
    new: int = 0
    same: int = 0
    changed: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    refused: dict[str, None] = field(default_factory=dict)
    lacking: list[SheetPerson] = field(default_factory=list)
    is_of_group: bool = False
    lost_zeros: Sequence[str] = ()

    def refuse_repeated(self, person: SheetPerson, lines: Sequence[int]) -> None:
        """Add a message about a row whose id also occurs in other lines."""
        where = " and ".join(map(str, lines))
        there = f"{self.sheet.table.name} has {quoted(person.id)} in lines {where}"
        self.refused[f"{there}, so these lines were not changed."] = None

    def fill_in(self, person: SheetPerson, owners: Sequence[str]) -> None:
        """Write the mark of a student, or add a message with the reason for not writing it.

        Args:
            person: the row.
            owners: the names of the submissions that match the keys of the row.
        """
        results = self.marks.results
        fitting = [name for name in owners if self._fits(person, results[name])]
        # A student who joined a group also has an earlier result, without a mark for this problem.
        fitting = [name for name in fitting if name in self.marks.of] or fitting
        if len(fitting) == 1:
            self.rows.append((person, fitting[0]))
        elif owners:
            self._refuse(person, [results[name] for name in owners], is_of_group=not fitting)
            return
        mark = self.marks.of.get(fitting[0]) if fitting else None
        if mark:
            self._write(person, mark)
        elif not person.locked:
            self.lacking.append(person)

    def _fits(self, person: SheetPerson, result: SubmissionResult) -> bool:
        """Return whether a row belongs to the student of a result with the same id.

        If the platform uses new numbers in each assignment, the id may be the number of a group. In
        this case, an e-mail address must match as well, or the name in the result must end with the
        name in the row. No name is compared if the result has none, or if the assignment hides it.
        """
        members = {member.lower() for member in result.members if "@" in member}
        if not self.sheet.platform.has_new_numbers or members & {*map(str.lower, person.keys)}:
            return True
        name, known = squeezed(result.full_name), squeezed(person.name)
        return not name or name.startswith(_HIDDEN_NAME) or (bool(known) and name.endswith(known))

    def _refuse(
        self, person: SheetPerson, owners: Sequence[SubmissionResult], *, is_of_group: bool
    ) -> None:
        who = " or ".join(map(called, owners))
        why = f"it may be the mark of {who}"
        if len(owners) == 1:
            why = f"in the results, this id belongs to {who}"
        self.refused[f"Not filled in for {person}: {why}."] = None
        self.is_of_group = self.is_of_group or is_of_group

    def _write(self, person: SheetPerson, mark: Mark) -> None:
        """Write a mark to its cell. Keep a cell that is locked or already contains the mark."""
        before, points = person.row.value(self.sheet.column), shown(mark.points)
        old = parse_number(before)
        if person.most is not None and mark.max != person.most:
            out_of = f"the mark is {points} of {shown(mark.max)}, because a test was left out"
            self.refused[f"Not filled in for {person}: {out_of}."] = None
        elif old is not None and shown(old) == points:
            self.same += 1
        elif person.locked:
            self.locked.append(f"{person}, {person.locked}; the mark is {points}")
        else:
            self.new += 1
            self.changed += [f"{person}: {before} -> {points}"] if before else []
            self.sheet.write(person.row, mark.points)

    def messages(self) -> list[str]:
        """Return all messages."""
        file, column = self.sheet.table.name, self.sheet.table.columns[self.sheet.column]
        same = f"; {self.same} were already correct" if self.same else ""
        missing = [self.marks.results[name] for name in self.marks.of if name not in self.in_file]
        messages = [
            f"{counted(self.new, 'mark')} filled in under {quoted(column)}{same}.",
            *(f"changed: {text}." for text in self.changed),
            *(f"left alone: {text}." for text in self.locked),
            *self.refused,
        ]
        messages += [_NUMBERS_OF_GROUPS] if self.is_of_group else []
        if self.lacking:
            messages.append(f"In {file}, but without a mark: {', '.join(map(str, self.lacking))}.")
        if missing:
            messages.append(f"With a mark, but not in {file}: {', '.join(map(called, missing))}.")
        messages += self._advice_on_other_numbers(missing)
        return [*messages, *self.lost_zeros, *self.sheet.messages, *self.marks.messages]

    def no_known_student(self) -> str:
        """Return the message that the results contain no student of the file."""
        results = [*self.marks.results.values()]
        there = some(self.sheet.people, _SUCH_AS) or "nobody"
        here = some([called(result) for result in results], _SUCH_AS)
        why = f"Nothing was filled in: no name or id in {self.sheet.table.name} is known here."
        return " ".join(
            [
                why,
                f"In the file: {there}. In the results: {here}.",
                *self._advice_on_other_numbers(results),
            ]
        )

    def _advice_on_other_numbers(self, missing: Sequence[SubmissionResult]) -> list[str]:
        """Return advice if a student in the file may have a result under another number.

        The advice is about one student: the first without a mark in the file. The student's name
        must occur only once in the file and only once in the results.

        Args:
            missing: the results that are not in the file.
        """
        people = self.lacking if self.sheet.platform.has_new_numbers else []
        number = Counter(squeezed(person.name) for person in self.sheet.people)
        identities: defaultdict[str, list[str]] = defaultdict(list)
        for result in self.marks.results.values():
            identities[squeezed(result.full_name)].append(result.identity)
        absent = {result.identity for result in missing}
        return [
            _OTHER_NUMBERS.format(person=person, identity=same_name[0])
            for person in people
            if number[name := squeezed(person.name)] == 1
            if name and len(same_name := identities[name]) == 1 and same_name[0] in absent
        ][:1]
