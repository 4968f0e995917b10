"""Read the roster `roster.csv`, a list of students from a platform or from the instructor.

The roster contains full names and sections, and shows which students have no submission. Entries
are matched with submissions first by the id on the platform, then by login, e-mail address or
number, and finally by name. An ambiguous name matches no submission. Different ids on the same
platform never match.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from grader.csv_table import read_table
from grader.errors import UsageError
from grader.text import person_name, quoted

FILE = "roster.csv"

_NAME = ("name", "full name", "student", "student name")
_FIRST = ("first name", "firstname", "given name")
_LAST = ("last name", "lastname", "surname", "family name")
_GROUPS = ("group", "groups")
_SECTION = ("section", "sections", *_GROUPS, "tutorial")
_NUMBERS = ("identity", "submission", "id", "student id", "sid", "id number", "sis user id", "uid")
_LOGINS = ("user", "username", "user name", "login", "login id", "sis login id", "github username")
_MAIL = ("email", "e-mail", "email address", "identifier")
_KEYS = (*_NUMBERS, *_LOGINS, *_MAIL)
_KNOWN = {*_NAME, *_FIRST, *_LAST, *_SECTION, *_KEYS}
_OF_CANVAS = {"id", "section"}
_OF_AN_ASSIGNMENT = {"identifier", "full name", "grade"}
"""The columns of Moodle's worksheet, in which `identifier` differs in each assignment."""

_STAFF = {"teacher", "instructor", "hta", "ta", "teaching assistant"}
"""The values of the column `role` for staff, as in rosters of Classroom 50."""

_NO_STUDENTS = {"points possible", "test student"}


class Known(NamedTuple):
    """The author of a submission.

    Attributes:
        identity: the stable identity of the author.
        name: the full name; empty if it is unknown.
        members: the ids of the authors on the platform.
    """

    identity: str
    name: str = ""
    members: Sequence[str] = ()

    @property
    def is_group(self) -> bool:
        """Whether there are several authors."""
        return len(self.members) > 1

    @property
    def platform(self) -> str:
        """The platform of the identity; empty if the identity is the name of a folder."""
        return self.identity.partition(":")[0] if ":" in self.identity else ""


@dataclass(frozen=True)
class RosterEntry:
    """A student on the roster.

    Attributes:
        name: the full name; may be empty.
        section: the section of the class; may be empty.
        id: the identity on a platform; may be empty.
        keys: logins, e-mail addresses and numbers.
        spellings: the name with the first and with the last name first, each `squeezed`.
        groups: the names of the student's groups on Moodle, as `squeezed` returns them.
    """

    name: str
    section: str = ""
    id: str = ""
    keys: frozenset[str] = frozenset()
    spellings: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @property
    def member(self) -> str:
        """The key that identifies this student as the member of a group."""
        return next((key for key in sorted(self.keys) if "@" in key), self.shown)

    @property
    def names(self) -> list[str]:
        """The names and ids by which an instructor may refer to the student."""
        return [name for name in (self.name, self.id, *sorted(self.keys)) if name]

    @property
    def shown(self) -> str:
        """The name in reports."""
        return self.name or self.id or min(self.keys)


@dataclass(frozen=True)
class Matched:
    """The submissions of a class, matched with the roster.

    Attributes:
        of: the entries for each identity. A group has several entries.
        absent: the entries without a submission.
        unclear: the entries that may match more than one submission.
        strangers: the identities without an entry.
        groups: the identities of groups.
    """

    of: Mapping[str, Sequence[RosterEntry]]
    absent: Sequence[RosterEntry]
    unclear: Sequence[RosterEntry]
    strangers: Sequence[str]
    groups: Collection[str]

    def name(self, identity: str) -> str:
        """Return the full name of a student; "" for a group or an unknown student."""
        entries = () if identity in self.groups else self.of.get(identity, ())
        return entries[0].name if entries else ""

    def names(self, identity: str) -> list[str]:
        """Return the names of a student, or of the members of a group."""
        return [name for entry in self.of.get(identity, ()) for name in entry.names]

    def section(self, identity: str) -> str:
        """Return the section of a student, or the sections of a group's members."""
        sections = [part for each in self.of.get(identity, ()) for part in each.section.split(", ")]
        return ", ".join(dict.fromkeys(filter(None, sections)))


class Roster:
    """The students of the class."""

    def __init__(self, entries: Sequence[RosterEntry] = ()) -> None:
        self.entries = entries

    def has_one(self, name: str) -> bool:
        """Return whether exactly one student has this name."""
        return sum(squeezed(name) in entry.spellings for entry in self.entries) == 1

    def group(self, name: str) -> list[RosterEntry]:
        """Return the members of a Moodle group. If a student has the same name, return [].

        Args:
            name: the name of the group.
        """
        key = squeezed(name)
        if any(key in entry.spellings for entry in self.entries):
            return []
        return [entry for entry in self.entries if key in entry.groups]

    def match(self, known: Iterable[Known]) -> Matched:
        """Match the entries with the authors of submissions.

        Args:
            known: all authors.
        """
        known = list({each.identity: each for each in known}.values())
        matched: defaultdict[str, list[RosterEntry]] = defaultdict(list)
        free = list(self.entries)
        unclear: dict[RosterEntry, None] = {}
        for keys in (_by_id, keys_of, _by_name):
            pairs = _pairs(self.entries, known, keys)
            entries_of = Counter(each.identity for authors in pairs.values() for each in authors)
            for entry in [*free]:
                candidates = [
                    each for each in pairs.get(entry, ()) if _may_match(entry, each, matched)
                ]
                single = [each for each in candidates if not each.is_group]
                # An entry may match several groups.
                is_clear = len(candidates) == 1 or (keys is keys_of and len(single) < 2)
                if candidates and is_clear and all(entries_of[c.identity] == 1 for c in single):
                    for each in single or candidates:
                        matched[each.identity].append(entry)
                    free.remove(entry)
                    unclear.pop(entry, None)
                elif candidates:
                    unclear[entry] = None
        return Matched(
            matched,
            [entry for entry in free if entry not in unclear],
            [*unclear],
            [each.identity for each in known if each.identity not in matched],
            {each.identity for each in known if each.is_group},
        )


_Pairs = dict[RosterEntry, list[Known]]


def _pairs(
    entries: Iterable[RosterEntry],
    known: Iterable[Known],
    keys: Callable[[RosterEntry | Known], Iterable[str]],
) -> _Pairs:
    """Map each entry to the authors that share a key with it."""
    by_key: defaultdict[str, dict[str, Known]] = defaultdict(dict)
    for each in known:
        for key in keys(each):
            by_key[key][each.identity] = each
    pairs: _Pairs = {}
    for entry in entries:
        shared = {id: each for key in keys(entry) for id, each in by_key[key].items()}
        if shared:
            pairs[entry] = [*shared.values()]
    return pairs


def _may_match(
    entry: RosterEntry, known: Known, matched: Mapping[str, Sequence[RosterEntry]]
) -> bool:
    """Return whether an entry can belong to an author.

    The ids of the entry and the author must not contradict each other. A single student must not
    have an entry yet, but a group can have several. On Canvas the name must match as well, because
    a user number of Canvas can equal another student's number at the university.
    """
    if entry.id != known.identity:
        if known.platform and entry.id.partition(":")[0] == known.platform:
            return False
        letters = [sorted(spelling) for spelling in entry.spellings]
        if known.platform == "canvas" and letters and sorted(squeezed(known.name)) not in letters:
            return False
    return known.is_group or known.identity not in matched


def _by_id(each: RosterEntry | Known) -> list[str]:
    id = each.id if isinstance(each, RosterEntry) else each.identity
    return [id] if ":" in id else []


def keys_of(each: RosterEntry | Known) -> list[str]:
    """Return the logins, e-mail addresses and numbers of an entry or author, in lower case."""
    if isinstance(each, RosterEntry):
        return [*each.keys]
    number, members = each.identity.partition(":")[2] or each.identity, each.members
    if each.platform == "moodle":  # Moodle's numbers differ in each assignment
        number, members = "", [key for key in members if "@" in key]
    return [_key(key) for key in (number, *members) if key]


def _by_name(each: RosterEntry | Known) -> list[str]:
    if isinstance(each, RosterEntry):
        return [*each.spellings]
    names = [each.name or each.identity, *(each.members if each.is_group else ())]
    return [key for name in names if (key := squeezed(name))]


def _key(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().lower()


def squeezed(name: str) -> str:
    """Return the letters, accents and digits of a name in lower case, to compare spellings."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(sign for sign in plain if unicodedata.category(sign)[0] in "LMN")


def first_name_first(name: str) -> str:
    """Return a name with the first name first: `Ada Lovelace` for `Lovelace, Ada`."""
    last, comma, first = name.partition(", ")
    return name if not comma or ", " in first else f"{first} {last}"


# Reading


def read_roster(path: Path) -> Roster:
    """Return the roster. If the file does not exist, return an empty roster.

    Raises:
        UsageError: the file can't be read, or has no known column.
    """
    if not path.exists():
        return Roster()
    table = read_table(path)
    columns = [name.lower().replace("_", " ") for name in table.columns]
    rows = [row.cells for row in table.rows]
    if not _KNOWN & {*columns}:
        columns, rows = ["name"], [table.header.cells, *rows]
        if any(len([cell for cell in cells if cell.strip()]) > 1 for cells in rows):
            raise UsageError(
                f"{path} must begin with a line that names the columns, for example "
                f"{quoted('name')}, {quoted('email')}, {quoted('id')} and {quoted('section')}."
            )
    entries = [_entry(columns, cells) for cells in rows]
    return Roster(list(dict.fromkeys(entry for entry in entries if entry is not None)))


def _entry(columns: Sequence[str], cells: Sequence[str]) -> RosterEntry | None:
    """Return the student of a line; None for staff, test students and empty lines."""
    row: dict[str, str] = {}
    for column, cell in zip(columns, cells, strict=False):
        row.setdefault(column, person_name(cell))
    name, spellings = _name(row)
    id, keys = _ids(row)
    if name.lower() in _NO_STUDENTS or row.get("role", "").lower() in _STAFF:
        return None
    if not (name or id or keys) or (_is_of_canvas(row) and not id):
        return None
    groups = frozenset(squeezed(group) for group in _first(row, _GROUPS).split(",")) - {""}
    section = _first(row, _SECTION)
    return RosterEntry(name, section, id, frozenset(keys), frozenset(spellings), groups)


def _name(row: Mapping[str, str]) -> tuple[str, set[str]]:
    """Return the name with the first name first, and the `spellings` of the entry."""
    whole, first, last = (_first(row, columns) for columns in (_NAME, _FIRST, _LAST))
    if not whole:
        whole = f"{first} {last}".strip()
    elif whole.count(", ") == 1:
        last, first = whole.split(", ")
        whole = first_name_first(whole)
    spellings = {squeezed(whole), squeezed(last + first) if first and last else ""}
    return whole, spellings - {""}


def _ids(row: Mapping[str, str]) -> tuple[str, set[str]]:
    """Return the identity on a platform, which may be empty, and the other keys."""
    keys = {column: row[column] for column in _KEYS if row.get(column)}
    if row.keys() >= _OF_AN_ASSIGNMENT:
        keys.pop("identifier", None)
    if _is_of_canvas(row):
        id = keys.pop("id", "")
        return f"canvas:{id}" if id else "", {_key(key) for key in keys.values()}
    identity = next((key for key in keys.values() if ":" in key), "")
    return identity, {_key(key) for key in keys.values() if key != identity}


def _is_of_canvas(row: Mapping[str, str]) -> bool:
    return row.keys() >= _OF_CANVAS and bool({"student", "lastname"} & row.keys())


def _first(row: Mapping[str, str], columns: Iterable[str]) -> str:
    return next((row[column] for column in columns if row.get(column)), "")
