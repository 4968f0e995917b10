"""What learning platforms make of submissions: one function for each platform's download.

Each looks at the names in a folder, or in an archive seen as one, and returns who handed in what,
or None when the folder is not of its kind. Nothing is read here but a platform's list of students,
and nothing is guessed: what fits nobody is told in a sentence. What the names of files say about
the problem they are for is decided here too, by one rule for all.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import yaml

from grader.course import SUBMISSION_FILE
from grader.intake.archives import Entry, Gathered, Kind, Refused, Renamed, archive_suffix

METADATA = "submission_metadata.yml"
"""In which a Gradescope export says whose each folder is."""

ROSTER = "grades.csv"
"""In which GitHub Classroom says whose each repository is."""

MAX_LIST_BYTES = {METADATA: 100_000_000, ROSTER: 5_000_000}
"""The largest lists of students that are read. Gradescope's holds the outputs of gradings too."""

_MAX_YAML = 5_000_000  # of which the names of 20,000 students are left when these are cut out


class Ids(tuple[str, ...]):
    """The problems that are looked for, by their ids.

    Attributes:
        bare: the problem that a file is for which is called `problem.py` and stands in no problem's
            folder; empty when nobody can know.
        others: the course's other problems. What is theirs is told and never taken.
    """

    bare: str = ""
    others: tuple[str, ...] = ()

    def given(self, problem: str) -> Ids:
        """Return the same ids when it is known which problem was handed in.

        Args:
            problem: one of the ids.
        """
        return self._with(self, problem, self.others)

    def sought(self) -> Ids:
        """Return the given problem alone; the same ids when none is given."""
        if not self.bare:
            return self
        return self._with((self.bare,), self.bare, tuple(id for id in self if id != self.bare))

    def inside(self, name: str) -> Ids:
        """Return what holds in a folder or an archive: its name may be that of another problem."""
        if not self.bare:
            return self
        stem = _before_reupload(name).removesuffix(archive_suffix(name))
        told = problem_of(f"{stem}.py", self) or self.nearest(stem)
        return self._with(self, told, self.others) if told in self.others else self

    def nearest(self, folder: str) -> str:
        """Return the problem whose id, known or looked for, a folder's name nearly is, if any."""
        known = [*self, *self.others]
        return next(iter(difflib.get_close_matches(folder.lower(), known, n=1, cutoff=0.8)), "")

    @staticmethod
    def _with(ids: Iterable[str], bare: str, others: tuple[str, ...]) -> Ids:
        made = Ids(ids)
        made.bare, made.others = bare, others
        return made


@dataclass(frozen=True)
class Work:
    """What one student, or one group, handed in.

    Attributes:
        name: the student's name, as the platform writes it.
        folder: what was handed in: a folder or an archive.
        members: one for each person, as the platform's gradebook knows them.
        late: whether the platform says that it came late.
        notes: sentences about how the files were found.
        unused: the names of what was handed in and can't be graded, such as a text typed online.
        id: the platform's number, to tell students of one name apart.
    """

    name: str
    folder: Entry
    members: tuple[str, ...] = ()
    late: bool = False
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    id: str = ""


@dataclass
class Layout:
    """A download, seen through.

    Attributes:
        title: what it is, such as `Canvas download`.
        works: one for each student or group.
        unmatched: sentences about what fits no student.
        notes: sentences about the download as a whole.
    """

    title: str
    works: list[Work]
    unmatched: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def recognise(found: Entry, ids: Ids) -> Layout | None:
    """Return what a folder holds if it, or the only folder in it, is what a platform packs.

    Args:
        found: the folder, or an archive opened.
        ids: the problems of the course.
    """
    children = [child for child in found.children() if not _is_plain_file(child)]
    is_around = len(children) == 1 and children[0].kind is Kind.FOLDER
    for place in (found, *children) if is_around else (found,):
        for look in (_gradescope, _moodle, _canvas, _nbgrader, partial(_github, around=found)):
            if layout := look(place, ids):
                layout.works = _told_apart(layout.works)
                return layout
    return None


# Which problem a file is for


def problem_of(name: str, ids: Ids) -> str | None:
    """Return the problem that the name of a single file tells, if it tells just one.

    That is `01-softmax.py`, `01.py` or `softmax.py`, each with or without the word `problem` before
    or after it, with any of `-`, `_`, space and point between words, in any case. The number has
    both digits: `problem-1.py` is what platforms and browsers make of a second `problem.py`. That
    name alone tells what is given with the ids.
    """
    if name.lower() == SUBMISSION_FILE:
        return ids.bare or None
    said = _said(name)
    fits = [id for id in (*ids, *ids.others) if said and said in {id, id[:2], id[3:]}]
    return fits[0] if len(fits) == 1 else None


def is_bare(name: str) -> bool:
    """Tell whether a file is called `problem.py`, or was before it was uploaded again."""
    return _before_reupload(name).lower() == SUBMISSION_FILE


def nearest_problem(name: str, ids: Ids) -> str | None:
    """Return the problem that a file's name may have meant. It is asked back, never used."""
    said = _said(name) or ""
    holds = [id for id in ids if id[3:] in said or id[:2] in said.split("-")]
    near = difflib.get_close_matches(said, [*ids, *(id[3:] for id in ids)], n=1, cutoff=0.7)
    found = holds or [id for id in ids if near and near[0] in (id, id[3:])]
    return found[0] if len(found) == 1 else None


def _said(name: str) -> str | None:
    stem, point, ending = name.lower().rpartition(".")
    if not point or ending != "py":
        return None
    words = "-".join(re.findall("[a-z0-9]+", stem))
    word = SUBMISSION_FILE.partition(".")[0]
    return words.removeprefix(word).removesuffix(word).strip("-")


def names_a_problem(member: str, ids: Ids) -> bool:
    """Tell whether a file may be one problem's by its name, with what a platform puts around it."""
    names = [member]
    if canvas := _canvas_match(member):
        names = [canvas["file"] or "", _before_reupload(canvas["file"] or "")]
    elif moodle := _MOODLE.fullmatch(member):
        names = [moodle["file"] or ""]
    return any(problem_of(name, ids) for name in names)


# Gradescope: submission_123/..., and submission_metadata.yml says whose


def _gradescope(place: Entry, ids: Ids) -> Layout | None:
    children = {child.name: child for child in place.children()}
    if METADATA not in children:
        return None
    metadata = children.pop(METADATA)
    layout = Layout("Gradescope export", [])
    people: dict[str, list[tuple[str, str]]] = {}
    try:
        people = _submitters(metadata.read(MAX_LIST_BYTES[METADATA]))
    except Refused as refused:
        layout.notes = [f"{refused.sentence(METADATA)} Submissions go by their folders' names."]
    absent = [key for key in people if key not in children]
    for name, child in children.items():
        if _is_plain_file(child):
            layout.unmatched.append(unmatched_file(name, absent))
        else:
            known = name in people or not people
            note = f"{name!a} is not in {METADATA}.{_did_you_mean(name, absent)}"
            layout.works.append(
                _gradescope_work(child, people.get(name, []), "" if known else note)
            )
    for key in absent:
        note = f"{key!a} is in {METADATA}, but there is no such folder."
        layout.works.append(_gradescope_work(Gathered(key), people[key], note))
    return layout


def _gradescope_work(folder: Entry, people: list[tuple[str, str]], note: str) -> Work:
    name = " + ".join(name for name, _ in people) or folder.name
    members = tuple(id for _, id in people)
    notes = (note,) if note else ()
    return Work(name, folder, members, notes=notes, id=folder.name.removeprefix("submission_"))


def _submitters(metadata: bytes) -> dict[str, list[tuple[str, str]]]:
    """Return names and addresses of those who handed in each folder.

    Raises:
        Refused: it is not what Gradescope writes.
    """
    try:
        text = _only_submitters(metadata.decode("utf-8-sig"))
        if len(text) > _MAX_YAML:
            raise Refused(f"lists more than {_MAX_YAML:,} characters of names")
        # BaseLoader is the strictest there is: it makes text, lists and mappings, nothing else.
        data = yaml.load(text, Loader=yaml.BaseLoader)
        return {key: [_person(who) for who in _listed(value)] for key, value in data.items()}
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError):
        raise Refused("is not a list of submissions as Gradescope writes it") from None


def _only_submitters(text: str) -> str:
    """Return the YAML without the results, which are long and hold what students printed."""
    kept: list[str] = []
    level = 0
    keep = False
    for line in text.split("\n"):
        content = line.lstrip(" ")
        indent = len(line) - len(content)
        if not content.strip():
            continue
        if not indent:
            keep, level = True, 0
        elif not level or (indent <= level and not content.startswith("-")):
            keep, level = content.startswith(":submitters:"), indent
        if keep:
            kept.append(line)
    return "\n".join(kept)


def _listed(value: Any) -> list[Any]:
    submitters = value.get(":submitters") if isinstance(value, dict) else None
    return submitters if isinstance(submitters, list) else []


def _person(who: Any) -> tuple[str, str]:
    """Return a name and what a gradebook knows the person by."""
    name, email, sid = (str(who.get(key) or "") for key in (":name", ":email", ":sid"))
    return name or email or sid, email or sid or name


# Canvas: lovelaceada_LATE_<user>_<attachment>_problem.py, all in one folder

_CANVAS_END = r"_(?:(?P<attachment>[1-9]\d*)_(?P<file>.+)|(?P<typed>text|link)\.html)"
_CANVAS = (
    re.compile(r"(?P<name>anon)(?P<late>_LATE)?_(?P<id>[A-Za-z0-9]+)" + _CANVAS_END, re.DOTALL),
    re.compile(r"(?P<name>.+?)(?P<late>_LATE)?_(?P<id>[1-9]\d*)" + _CANVAS_END, re.DOTALL),
)
_REUPLOAD = re.compile(r"-[1-9]\d*(?=\.[^.]+\Z)")


def _canvas_match(name: str) -> re.Match[str] | None:
    return next((match for pattern in _CANVAS if (match := pattern.fullmatch(name))), None)


def _before_reupload(file: str) -> str:
    """Return what a file was called before Canvas made `problem-1.py` of a second `problem.py`."""
    return _REUPLOAD.sub("", file)


def _canvas(place: Entry, ids: Ids) -> Layout | None:
    children = place.children()
    files = [(child, _canvas_match(child.name)) for child in children]
    fits = [(c, match) for c, match in files if match and c.kind is not Kind.FOLDER]
    if len(fits) * 2 <= len(children) or not _is_of_canvas([match for _, match in fits]):
        return None
    students: dict[str, list[tuple[Entry, re.Match[str]]]] = {}
    for child, match in fits:
        students.setdefault(match["id"], []).append((child, match))
    works = [_canvas_work(files, ids) for files in students.values()]
    used = {child.name for child, _ in fits}
    others = [child for child in children if child.name not in used]
    return _with_others(Layout("Canvas download", works), others)


def _is_of_canvas(matches: Sequence[re.Match[str]]) -> bool:
    """Tell whether the numbers are: one user for a name, and no attachment twice."""
    users: dict[str, str] = {}
    attachments = [match["attachment"] for match in matches if match["attachment"]]
    one_name = all(users.setdefault(m["id"], m["name"]) == m["name"] for m in matches)
    return one_name and len(set(attachments)) == len(attachments)


def _canvas_work(files: Sequence[tuple[Entry, re.Match[str]]], ids: Ids) -> Work:
    first = files[0][1]
    uploads = sorted(
        ((child, m) for child, m in files if m["file"]), key=lambda u: int(u[1]["attachment"])
    )
    names = {match["file"] for _, match in uploads}
    versions: dict[str, list[tuple[Entry, str]]] = {}
    for child, match in uploads:
        before = _before_reupload(match["file"])
        is_known = problem_of(before, ids) or (archive_suffix(before) and before in names)
        is_copy = is_known and not problem_of(match["file"], ids)
        called = before if is_copy else match["file"]
        versions.setdefault(called, []).append((child, match["file"]))
    entries = [Renamed(found[-1][0], called) for called, found in versions.items()]
    notes = [note for called, found in versions.items() if (note := _reuploads(called, found))]
    typed = [m["typed"] for _, m in files if m["typed"]]
    return Work(
        f"anon {first['id']}" if first["name"] == "anon" else first["name"],
        _handed_in(first["name"], entries),
        members=(first["id"],),
        late=any(match["late"] for _, match in files),
        notes=(*notes, *map(_typed, typed)),
        unused=(*(f"{kind}.html" for kind in typed), *_older(versions.values())),
        id=first["id"],
    )


def _reuploads(called: str, found: Sequence[tuple[Entry, str]]) -> str:
    """Return a sentence about which of several uploads counts; empty when there was only one."""
    names = [name for _, name in found]
    if len(names) > 1:
        older = " and ".join(ascii(name) for name in names[:-1])
        return f"{names[-1]!a} was read, the newest upload of {called!a}, but not {older}."
    return f"{names[0]!a} was read as {called!a}, uploaded again." if names[0] != called else ""


def _older(versions: Iterable[Sequence[tuple[Entry, str]]]) -> list[str]:
    return [name for found in versions for _, name in found[:-1]]


# Moodle: Ada Lovelace_<id>_assignsubmission_file_/..., or the same before each file's name

_MOODLE = re.compile(
    r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL
)


def _moodle(place: Entry, ids: Ids) -> Layout | None:
    students: dict[tuple[str, str], list[tuple[Entry, re.Match[str]]]] = {}
    others: list[Entry] = []
    for child in place.children():
        if match := _MOODLE.fullmatch(child.name):
            students.setdefault((match["name"], match["id"]), []).append((child, match))
        else:
            others.append(child)
    if not students:
        return None
    works = [_moodle_work(name, id, found) for (name, id), found in students.items()]
    return _with_others(Layout("Moodle download", works), others)


def _moodle_work(name: str, id: str, found: Sequence[tuple[Entry, re.Match[str]]]) -> Work:
    entries: list[Entry] = []
    typed = []
    for child, match in found:
        if match["kind"] != "file":
            typed.append(match["kind"])
        elif match["file"]:
            entries.append(Renamed(child, match["file"]))
        else:
            entries += _children_or_itself(child)
    # Moodle's grading worksheet calls everybody so, whether or not names are shown.
    identifier = f"Participant {id}"
    shown = f"{name} {id}" if name in ("Participant", "Group") else name
    return Work(
        shown,
        _handed_in(name, entries),
        members=(identifier,),
        notes=tuple(map(_typed, typed)),
        unused=tuple(typed),
        id=id,
    )


def _children_or_itself(entry: Entry) -> list[Entry]:
    with suppress(Refused):
        return entry.children()
    return [entry]


# nbgrader: submitted/<student>/<assignment>/..., each with a timestamp.txt

_STAMP = "timestamp.txt"


def _nbgrader(place: Entry, ids: Ids) -> Layout | None:
    below = [c for c in place.children() if c.name == "submitted" and c.kind is Kind.FOLDER]
    submitted = below[0] if below else place
    children = submitted.children()
    students = [child for child in children if child.kind is Kind.FOLDER]
    stamped = sum(map(_is_stamped, students))
    if not students or (submitted.name != "submitted" and stamped * 2 <= len(children)):
        return None
    works = [Work(c.name, _assignment(c, ids), members=(c.name,)) for c in students]
    others = [child for child in children if child.kind is not Kind.FOLDER]
    return _with_others(Layout("nbgrader course", works), others)


def _is_stamped(student: Entry) -> bool:
    """Tell whether a student's folder holds an assignment with nbgrader's time stamp."""
    assignments = [c for c in _children_or_itself(student) if c.kind is Kind.FOLDER]
    return any(c.name == _STAMP for a in assignments for c in _children_or_itself(a))


def _assignment(student: Entry, ids: Ids) -> Entry:
    """Return the only assignment of a student; all of them if they are problems or several."""
    assignments = [c for c in _children_or_itself(student) if c.kind is Kind.FOLDER]
    if len(assignments) != 1 or assignments[0].name in ids:
        return student
    files = [c for c in _children_or_itself(assignments[0]) if c.name != _STAMP]
    return _handed_in(student.name, files)


# GitHub Classroom: <slug>-submissions/<slug>-<user name>/, each a clone; grades.csv says whose

_AS_WRITTEN = "as `gh classroom assignment-grades` writes it"


@dataclass(frozen=True)
class _Listed:
    """A line of GitHub Classroom's roster: whose repository it is."""

    user: str
    who: str
    repository: str

    @property
    def member(self) -> str:
        """What a gradebook knows the person by."""
        return self.who or self.user


def _github(place: Entry, ids: Ids, around: Entry) -> Layout | None:
    slug, found, _ = place.name.removesuffix(archive_suffix(place.name)).rpartition("-submissions")
    prefix = f"{slug}-"
    clones: dict[str, Entry] = {}
    others = []
    for child in place.children():
        if child.kind is Kind.FOLDER and child.name.startswith(prefix) and child.name != prefix:
            clones[child.name.removeprefix(prefix)] = child
        elif child.name != ROSTER:
            others.append(child)
    if not found or not clones:
        return None
    layout = Layout("GitHub Classroom clones", [])
    lines: list[_Listed] | None = None
    try:
        lines = _roster([place] if place is around else [place, around])
    except Refused as refused:
        layout.notes = [f"{refused.sentence(ROSTER)} Submissions go by their user names."]
    layout.works = _github_works(clones, lines)
    return _with_others(layout, others)


def _github_works(clones: dict[str, Entry], lines: list[_Listed] | None) -> list[Work]:
    """Return a work for each clone, and for each line of the roster that has none.

    Args:
        clones: by user name.
        lines: the roster; None when there is none.
    """
    if lines is None:
        return [Work(user, clone, members=(user,)) for user, clone in clones.items()]
    by_repository = _by(lines, lambda line: line.repository)
    by_user = _by(lines, lambda line: line.user)
    own = {
        user: by_repository.get(clone.name.lower()) or by_user.get(user.lower(), [])
        for user, clone in clones.items()
    }
    used = {line for found in own.values() for line in found}
    unused = [line for line in lines if line not in used]
    works = []
    for user, clone in clones.items():
        note = f"{clone.name!a} has no roster identifier in {ROSTER}."
        if not own[user]:
            near = _did_you_mean(user, (line.user for line in unused))
            note = f"{clone.name!a} is not in {ROSTER}.{near}"
        known = any(line.who for line in own[user])
        works.append(_github_work(clone, user, own[user], "" if known else note))
    for found in _by(unused, lambda line: line.repository or line.member).values():
        name = found[0].repository or found[0].member
        note = f"{name!a} is in {ROSTER}, but there is no such folder."
        works.append(_github_work(Gathered(name), found[0].user, found, note))
    return works


def _by(lines: Iterable[_Listed], name: Callable[[_Listed], str]) -> dict[str, list[_Listed]]:
    """Return lines by a name in them; GitHub's names are the same in capitals."""
    found: dict[str, list[_Listed]] = {}
    for line in lines:
        found.setdefault(name(line).lower(), []).append(line)
    return found


def _github_work(clone: Entry, user: str, lines: Sequence[_Listed], note: str) -> Work:
    members = tuple(line.member for line in lines if line.member) or (user,)
    notes = (note,) if note else ()
    return Work(" + ".join(members), clone, members, notes=notes, id=user)


def _roster(places: Iterable[Entry]) -> list[_Listed] | None:
    """Return what the roster in one of the places says; None when there is none.

    Raises:
        Refused: it is not what GitHub Classroom writes, or there is more than one.
    """
    found = [child for place in places for child in place.children() if child.name == ROSTER]
    if len(found) > 1:
        raise Refused("is there twice; which one counts can't be known, so keep one")
    return _listed_in(found[0].read(MAX_LIST_BYTES[ROSTER])) if found else None


def _listed_in(content: bytes) -> list[_Listed]:
    lines: dict[_Listed, None] = {}
    known: dict[str, str] = {}
    for row in _rows(content):
        line = _Listed(
            row.get("github_username", ""),
            row["roster_identifier"],
            row.get("student_repository_name", "").rpartition("/")[2],
        )
        other = known.setdefault(line.user.lower(), line.who) if line.user else line.who
        if other != line.who:
            both = f"{line.user!a} as {other!a} and as {line.who!a}"
            raise Refused(f"gives {both}; which one counts can't be known")
        if any((line.user, line.who, line.repository)):
            lines[line] = None
    return list(lines)


def _rows(content: bytes) -> list[dict[str, str]]:
    """Return the lines of a roster by the names of their columns."""
    rows = []
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        columns = next(reader, [])
        if "roster_identifier" not in columns:
            raise Refused(f"has no column 'roster_identifier', {_AS_WRITTEN}")
        if not {"github_username", "student_repository_name"} & set(columns):
            which = "'github_username' or 'student_repository_name'"
            raise Refused(f"has no column {which}, {_AS_WRITTEN}")
        for row in filter(None, reader):
            if len(row) != len(columns):
                place = f"in line {reader.line_num}, not {len(columns)}"
                raise Refused(f"has {len(row)} columns {place}")
            rows.append({name: cell.strip() for name, cell in zip(columns, row, strict=True)})
    except (ValueError, csv.Error):
        raise Refused("is not a CSV file in UTF-8") from None
    return rows


# What they share


def plain_work(entry: Entry, *notes: str) -> Work:
    """Return what goes by its own name, because no platform says whose it is."""
    return Work(
        entry.name.removesuffix(archive_suffix(entry.name)) or entry.name, entry, notes=notes
    )


def _is_plain_file(entry: Entry) -> bool:
    return entry.kind is Kind.FILE and not archive_suffix(entry.name)


def _with_others(layout: Layout, others: Iterable[Entry]) -> Layout:
    """Add what fits no student. Only plain files are left out, so that nobody vanishes."""
    names = [work.name for work in layout.works]
    for entry in others:
        if _is_plain_file(entry):
            layout.unmatched.append(unmatched_file(entry.name, names))
        else:
            near = _did_you_mean(entry.name, names)
            layout.works.append(plain_work(entry, f"Its name fits no student.{near}"))
    return layout


def _handed_in(name: str, entries: Sequence[Entry]) -> Entry:
    """Return what to look through: the archive, if that is all there is, or a folder of it all."""
    if len(entries) == 1 and entries[0].kind is Kind.FILE and archive_suffix(entries[0].name):
        return entries[0]
    count = Counter(entry.name for entry in entries)
    twice = [name for name, n in count.items() if n > 1]
    fault = f"holds {twice[0]!a} more than once; which one counts can't be known" if twice else ""
    return Gathered(name, tuple(entries), fault)


def _told_apart(works: Sequence[Work]) -> list[Work]:
    """Return the works with the platform's number added to names that several students have."""
    count = Counter(work.name.lower() for work in works)
    return [
        replace(work, name=f"{work.name} {work.id}")
        if count[work.name.lower()] > 1 and work.id
        else work
        for work in works
    ]


def _typed(kind: str) -> str:
    """Return a sentence about what was handed in without a file; Canvas says text or link."""
    what = {"text": "A text typed online", "link": "A link", "onlinetext": "A text typed online"}
    return f"{what.get(kind, f'What Moodle calls {kind}')} was handed in; it is not graded."


def unmatched_file(name: str, known: Iterable[str]) -> str:
    """Return a sentence about a file that is no student's."""
    return f"{name!a} was not used; it fits no student.{_did_you_mean(name, known)}"


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    known = list(known)
    lowered = name.lower()
    inside = sorted((k for k in known if len(k) > 2 and k.lower() in lowered), key=len)[-1:]
    near = inside or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f" Did you mean {near[0]!a}?" if near else ""
