"""Fill marks into a platform's file and report changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grader.errors import UsageError
from grader.gradebook.export.marks import Mark, Marks, called, written
from grader.gradebook.export.sheet import Order, Sheet, SheetFormat, SheetPerson
from grader.gradebook.roster import squeezed
from grader.gradebook.who_is_meant import People
from grader.result import SubmissionResult, shown
from grader.text import counted, parse_number, quoted, some

_SUCH_AS = 3


@dataclass
class Filled:
    """A file with marks.

    Attributes:
        content: its bytes.
        rows: the rows of students, each with the name of the submission.
        told: messages about changes, locked cells and missing students.
    """

    content: bytes
    rows: list[tuple[SheetPerson, str]]
    told: list[str]


def fill(platform: SheetFormat, sheet: Sheet, marks: Marks, order: Order, people: People) -> Filled:
    """Fill marks into a platform's file. Only cells of one column change.

    Args:
        platform: the format of the file.
        sheet: the file.
        marks: the marks.
        order: the request.
        people: the class.

    Raises:
        UsageError: marks and file have different scales, or no common student.
    """
    _require_scale(sheet, marks, order)
    work = _Filling(sheet, marks, order.scale, sheet.writes_comma())
    owners = {
        key: people.owners(key, platform.platform) for each in sheet.people for key in each.keys
    }
    for person in work.known_once(owners, order):
        names = [*dict.fromkeys(name for key in person.keys for name in owners[key])]
        work.found.update(names)
        fitting = [n for n in names if platform.fits(person, marks.results[n])]
        if len(fitting) > 1:  # a student who changed to a group
            fitting = [name for name in fitting if name in marks.of] or fitting
        if len(fitting) == 1:
            mark = marks.of.get(fitting[0])
        elif mark := _sum_over_groups(person, fitting, marks):
            work.added_up.append(person)
        elif names:
            work.refuse(person, names)
            work.misfits = "" if fitting else platform.misfits
            continue
        work.rows += [(person, name) for name in fitting]
        if mark is not None:
            work.put(person, mark)
        elif not person.may_lack:
            work.lacking.append(person)
    if order.new_column and sheet.worth:
        most = written(marks.most, comma=work.comma)
        sheet.table.fill(sheet.worth, sheet.column, most)
    namesakes = "" if order.by_name else platform.namesakes
    zeros = _lost_zeros(sheet, people)
    if not work.found:
        raise UsageError(" ".join([work.nobody_known(namesakes), *zeros]))
    told = [*work.sentences(namesakes), *zeros, *sheet.told, *marks.told]
    return Filled(sheet.table.encoded(), work.rows, told)


def _lost_zeros(sheet: Sheet, people: People) -> list[str]:
    """Return a question about numbers without their leading zeros."""
    whole: dict[str, list[str]] = {}
    for name in people.known_names():
        whole.setdefault(name.lstrip("0"), []).append(name)
    keys = [key for person in sheet.people for key in person.keys if not people.meant(key)]
    lost = [(whole[key][0], key) for key in keys if len(whole.get(key, ())) == 1]
    if not lost:
        return []
    meant = some([f"{full} by {key}" for full, key in lost], _SUCH_AS)
    return [
        f"Did you mean {meant}? {sheet.table.name} lacks leading zeros: save that column as text."
    ]


def _sum_over_groups(person: SheetPerson, names: Sequence[str], marks: Marks) -> Mark | None:
    """Return the sum over the groups of a student; None if it is ambiguous."""
    members = [{m.lower() for m in marks.results[name].members} for name in names]
    is_member = any(all(key in group for group in members) for key in person.keys)
    return marks.together(names) if members and is_member else None


def _require_scale(sheet: Sheet, marks: Marks, order: Order) -> None:
    """Reject marks with another maximum than the file."""
    most = {person.most for person in sheet.people if person.most is not None}
    other = sorted(m for m in most if m != marks.most)
    if order.scale and (not most or 0 in most):
        raise UsageError(f"{sheet.table.name} doesn't say how many points there are to scale to.")
    if other and not order.scale:
        differ = any(mark.max != marks.most for mark in marks.of.values())
        worth = f"{'up to ' if differ else ''}{shown(marks.most)}"
        raise UsageError(
            f"{marks.what} is worth {worth} points here, but {shown(other[0])} in "
            f"{sheet.table.name}. Change it there, or use --scale to convert the marks."
        )


@dataclass
class _Filling:
    """The state of an export, and its messages."""

    sheet: Sheet
    marks: Marks
    scale: bool
    comma: bool
    rows: list[tuple[SheetPerson, str]] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    new: int = 0
    same: int = 0
    changed: list[str] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    lacking: list[SheetPerson] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    added_up: list[SheetPerson] = field(default_factory=list)
    misfits: str = ""

    def known_once(self, owners: Mapping[str, Sequence[str]], order: Order) -> list[SheetPerson]:
        """Return the students with unique keys; add messages for the others."""
        people: dict[str, list[SheetPerson]] = {}
        for person in self.sheet.people:
            for key in dict.fromkeys(person.keys):
                people.setdefault(key, []).append(person)
        twice = {key: found for key, found in people.items() if len(found) > 1}
        told: dict[str, None] = {}  # people may share several keys
        for key, found in twice.items():
            lines = " and ".join(str(person.row.line) for person in found)
            who = found[0].name if order.by_name else found[0].id or found[0].keys[0]
            there = f"{self.sheet.table.name} has {quoted(who)} in lines {lines}"
            told[f"{there}, so these were left as they were."] = None
            self.found.update(owners[key])
        self.refused += told
        return [p for p in self.sheet.people if not twice.keys() & set(p.keys)]

    def put(self, person: SheetPerson, mark: Mark) -> None:
        """Write a mark into its cell, unless the cell is equal or locked."""
        points = self._points(person, mark)
        if points is None:
            return
        before = person.row.value(self.sheet.column)
        old = parse_number(before)
        if old is not None and shown(old) == shown(points):
            self.same += 1
        elif person.locked:
            self.locked.append(f"{whose(person)}, {person.locked}; the mark is {shown(points)}")
        else:
            self.new += 1
            self.changed += [f"{whose(person)}: {before} -> {shown(points)}"] if before else []
            text = written(points, comma=self.comma)
            self.sheet.table.fill(person.row, self.sheet.column, text)

    def _points(self, person: SheetPerson, mark: Mark) -> float | None:
        if self.scale and person.most is not None:
            return mark.out_of(person.most)
        if person.most is None or mark.max == person.most:
            return mark.points
        self.refused.append(
            f"Not filled in for {whose(person)}: the mark is out of {shown(mark.max)}, as "
            f"something was left out, and not out of {shown(person.most)}; --scale converts it."
        )
        return None

    def refuse(self, person: SheetPerson, names: Sequence[str]) -> None:
        """Add a message for a row with an ambiguous or another owner."""
        who = " or ".join(called(self.marks.results[name]) for name in names)
        why = f"it may be the mark of {who}"
        if len(names) == 1:
            why = f"in the results this id is that of {who}"
        self.refused.append(f"Not filled in for {whose(person)}: {why}.")

    def sentences(self, namesakes: str) -> list[str]:
        """Return all messages.

        Args:
            namesakes: the message for a student with another id in the results.
        """
        file, column = self.sheet.table.name, self.sheet.table.columns[self.sheet.column]
        same = f"; {self.same} stood there already" if self.same else ""
        told = [f"{counted(self.new, 'mark')} filled in under {quoted(column)}{same}."]
        told += [f"changed: {text}." for text in self.changed]
        told += [f"left alone: {text}." for text in self.locked]
        told += [*self.refused, *([self.misfits] if self.misfits else [])]
        if self.added_up:
            who = ", ".join(map(whose, self.added_up))
            told.append(f"Added up, as these were in several groups: {who}.")
        missing = [self.marks.results[n] for n in self.marks.of if n not in self.found]
        if self.lacking:
            told.append(f"In {file}, but without a mark: {', '.join(map(whose, self.lacking))}.")
        if missing:
            told.append(f"With a mark, but not in {file}: {', '.join(map(called, missing))}.")
        told += self._namesakes(missing, namesakes)[:1]
        return told

    def nobody_known(self, namesakes: str) -> str:
        """Return the message for a file without any known student."""
        results = [*self.marks.results.values()]
        there = some([whose(person) for person in self.sheet.people], _SUCH_AS) or "nobody"
        here = some([called(result) for result in results], _SUCH_AS)
        ways = self._namesakes(results, namesakes)[:1]
        file = self.sheet.table.name
        said = f"Nothing was filled in: no name or id in {file} is known here."
        return " ".join([said, f"There: {there}. Here: {here}.", *ways])

    def _namesakes(self, missing: Sequence[SubmissionResult], text: str) -> list[str]:
        known = {squeezed(result.full_name): result.identity for result in missing}
        return [
            text.format(name=person.name, number=person.id, identity=identity)
            for person in self.lacking
            if text and person.name and (identity := known.get(squeezed(person.name)))
        ]


def whose(person: SheetPerson) -> str:
    """Return the name of a student with the platform's id."""
    key = person.id or "".join(person.keys[:1])
    return f"{person.name} ({key})" if person.name and key else person.name or key
