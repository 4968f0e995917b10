"""What comes in: finds submissions in folders and archives and reads each student's files once.

Nothing in a submission is run, imported, unpacked or followed here. A file is read only when it is
a regular file of reasonable size; everything else about it is told in a sentence. Whatever is wrong
with one submission is said in its own row and never keeps the others from being read.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.course import SUBMISSION_FILE, Course, Problem
from grader.errors import SubmissionError
from grader.intake import layouts
from grader.intake.archives import (
    ARCHIVE_SUFFIXES,
    BadArchive,
    Entry,
    Gathered,
    InArchive,
    Kind,
    OnDisk,
    Refused,
    Renamed,
    Wanted,
    archive_suffix,
)
from grader.intake.layouts import Ids, Layout, Work, plain_work, problem_of
from grader.text import counted

MAX_SOURCE_BYTES = 1_000_000
"""The largest problem.py that is read. The reference solutions have about 3,000 bytes."""

_PROBLEMS = "problems"
_NAMES_SHOWN = 3
_CANDIDATES_SHOWN = 20
_LIST_DEPTH = 2  # a platform's list of students lies in the folder or the only one in it
_UNSAFE = re.compile(r"[^\w.@+ -]", re.ASCII)
_NAME_IT = "If this was handed in for one problem only, name it, such as --problem {}"


@dataclass(frozen=True)
class StudentFile:
    """One problem's file, as read: its bytes, or why there are none.

    Attributes:
        source: the file's bytes; None when it couldn't be read.
        reason: why there is no source; for the student and the instructor.
        bad: whether the file is there but can't be used, rather than missing.
    """

    source: bytes | None
    reason: str = ""
    bad: bool = False

    @property
    def sha256(self) -> str:
        """The hash of what was read; empty when nothing was."""
        return "" if self.source is None else hashlib.sha256(self.source).hexdigest()


@dataclass
class Submission:
    """One student's work.

    Attributes:
        name: a name that is safe for a file and unique in its class.
        files: by problem id.
        notes: sentences about what was found, for example a folder whose name was nearly right.
        members: whose work it is, as a learning platform knows them; empty outside of one.
        late: whether the platform says that it came late.
        unused: the names of files that were handed in and could not be mapped to a problem.
    """

    name: str
    files: dict[str, StudentFile]
    notes: list[str] = field(default_factory=list)
    members: tuple[str, ...] = ()
    late: bool = False
    unused: tuple[str, ...] = ()

    def only(self, ids: Iterable[str]) -> Submission:
        """Return the same submission with some of its problems."""
        return replace(self, files={id: self.files[id] for id in ids})


@dataclass
class Intake:
    """What was found at all paths.

    Attributes:
        submissions: in the order in which they were found.
        recognised: a line about each download of a learning platform.
        unmatched: sentences about what belongs to no student, or to more than one.
    """

    submissions: list[Submission] = field(default_factory=list)
    recognised: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)


def find_submissions(
    paths: Iterable[Path], course: Course, only: Problem | None = None
) -> list[Submission]:
    """Read all submissions at `paths`; `take_in` says how."""
    return take_in(paths, course, only).submissions


def take_in(paths: Iterable[Path], course: Course, only: Problem | None = None) -> Intake:
    """Read all submissions at `paths`, each one submission or a class of them.

    Folders and archives are alike. What a learning platform packs is recognised as such. Any other
    class holds submissions; a single folder around a class, or around what an archive holds, is
    looked through. What holds a problem's folder is one submission, unless two or more submissions
    stand beside that folder: then it is a class, and the problem's folder is listed with a reason.
    Of several paths, one that doesn't hold two submissions or more is one submission.

    Args:
        paths: what the instructor gave.
        course: whose problems to look for.
        only: the one problem that was handed in, if there is one. Then nothing else is looked for,
            and a `problem.py` whose path tells no problem is taken as if it stood in that folder.

    Raises:
        SubmissionError: a path is neither a folder nor an archive, or there is nothing in it.
    """
    ids = Ids(problem.id for problem in course.problems()).given(only.id if only else "")
    paths = list(paths)
    intake = Intake()
    origins: dict[str, Path] = {}
    for path in paths:
        with _opened_path(path, ids) as found:
            layout = _layout_at(path, found, ids, several=len(paths) > 1)
            before = len(intake.submissions)
            for work in layout.works:
                name = _free_name(work.name, origins)
                intake.submissions.append(_read_submission(work, name, ids.sought()))
                intake.unmatched += _same_name(work.name, name, path, origins)
                origins[name] = path
        if layout.title:
            line = _summary(layout, intake.submissions[before:])
            intake.recognised.append(f"{path.name}: {line}" if len(paths) > 1 else line)
        intake.unmatched += [*layout.notes, *layout.unmatched]
    intake.unmatched += [*_in_several(intake.submissions), *_bare_files(intake.submissions, ids)]
    return intake


def read_source(path: Path) -> StudentFile:
    """Read a regular file of at most MAX_SOURCE_BYTES without following a link or waiting."""
    return _read_file(OnDisk(path, Kind.FILE), path.parent.name)


# Which submissions there are


@contextmanager
def _opened_path(path: Path, ids: Ids) -> Iterator[Entry]:
    """Give what stands at a path that the instructor gave; an archive stays open meanwhile."""
    given = _given(path, ids)
    with ExitStack() as stack:
        found: Entry = given
        if given.kind is not Kind.FOLDER:
            try:
                found = stack.enter_context(given.held_open(_wanted(ids)))
            except BadArchive as bad:
                found = InArchive(given.name, Kind.OTHER, fault=str(bad))
        yield found


def _layout_at(path: Path, found: Entry, ids: Ids, *, several: bool) -> Layout:
    """Return what there is at a path: a platform's download, a class or one submission."""
    if found.kind is Kind.OTHER:
        return Layout("", [plain_work(found)])
    try:
        # A file that tells its problem only because that is given doesn't make it a submission.
        layout = None if _has_work(found, ids.given("")) else layouts.recognise(found, ids)
        if layout is None:
            students = _students(found, ids, several=several)
            layout = Layout("", [plain_work(student) for student in students])
            if all(student is not found for student in students):
                layout.unmatched = [
                    layouts.unmatched_file(name, ()) for name in _told(found.children(), ids)
                ]
            if len(students) == 1 and not ids.bare:
                layout.notes = _hidden_class(found, ids, several=several)
    except Refused as refused:
        raise SubmissionError(f"{path} {refused}; {_what_to_give(ids)}") from None
    if not layout.works:
        bare = _has_work(found, ids.given(ids[0]))
        hint = f". It has a {SUBMISSION_FILE}. {_NAME_IT.format(ids[0])}" if bare else ""
        raise SubmissionError(f"{path} holds no submissions; {_what_to_give(ids)}{hint}")
    return layout


def _hidden_class(found: Entry, ids: Ids, *, several: bool) -> list[str]:
    """Return a hint if what seems to be one submission is a class once its problem is given."""
    given = _students(found, ids.given(ids[0]), several=several)
    return [_name_it(len(given), ids)] if len(given) > 1 else []


def _given(path: Path, ids: Ids) -> OnDisk:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        raise SubmissionError(f"{path} does not exist; {_what_to_give(ids)}") from None
    except OSError as error:
        raise SubmissionError(
            f"{path} can't be read ({error.strerror}); {_what_to_give(ids)}"
        ) from None
    if not is_folder and not archive_suffix(path.name):
        raise SubmissionError(f"{path} is not a folder or an archive; {_what_to_give(ids)}")
    return OnDisk(path.resolve(), Kind.FOLDER if is_folder else Kind.FILE)


def _what_to_give(ids: Ids) -> str:
    return (
        f"give a submission, which is a folder or an archive ({', '.join(ARCHIVE_SUFFIXES)}) with "
        f"{ids[0]}/{SUBMISSION_FILE} and so on in it, or a folder of submissions"
    )


def _wanted(ids: Ids) -> Wanted:
    """Return what says which members of an archive are read: problems' files, a list of names."""

    def most_bytes(parts: list[str]) -> int:
        if parts[-1] in layouts.MAX_LIST_BYTES:
            return layouts.MAX_LIST_BYTES[parts[-1]] if len(parts) <= _LIST_DEPTH else 0
        in_folder = parts[-1] == SUBMISSION_FILE and len(parts) > 1 and parts[-2] in ids
        return MAX_SOURCE_BYTES if in_folder or layouts.names_a_problem(parts[-1], ids) else 0

    return most_bytes


def _opened(entry: Entry, ids: Ids) -> Entry:
    """Return the folder that an entry is; an archive is read for it."""
    if entry.kind is Kind.FOLDER or not archive_suffix(entry.name):
        return entry
    return entry.unpacked(_wanted(ids))


def _students(found: Entry, ids: Ids, *, several: bool) -> list[Entry]:
    """Return what to list of a folder: itself if it is one submission, else those in it."""
    inside = [child for child in found.children() if _may_be_submission(child)]
    works = [child for child in inside if _is_submission(child, ids)]
    if _has_work(found, ids):
        return inside if len(works) > 1 else [found]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER and not works:
        wrapped = _students_of_class(inside[0], ids)
        inside = wrapped or inside
        works = wrapped
    folders = [child for child in inside if child.kind is not Kind.OTHER]
    is_one = isinstance(found, InArchive) and len(folders) < 2
    return [found] if is_one or (several and len(works) < 2) else inside


def _students_of_class(folder: Entry, ids: Ids) -> list[Entry]:
    """Return what a folder holds if that is a class, of two submissions or more."""
    with suppress(Refused):
        inside = [child for child in folder.children() if _may_be_submission(child)]
        if not _has_work(folder, ids) and sum(_is_submission(c, ids) for c in inside) > 1:
            return inside
    return []


def _may_be_submission(entry: Entry) -> bool:
    """Tell whether a class lists it: all but plain files, so that nobody vanishes unnoticed."""
    return entry.kind is not Kind.FILE or bool(archive_suffix(entry.name))


def _is_submission(entry: Entry, ids: Ids) -> bool:
    """Tell whether an entry of a class is a submission by the look of it."""
    if entry.kind is Kind.FILE:
        return bool(archive_suffix(entry.name))
    # A folder nearly called like a problem isn't a student's because a problem.py stands in it.
    ids = ids.given("") if ids.bare and ids.nearest(entry.name) else ids
    with suppress(Refused):
        own = {_PROBLEMS, *ids}
        return entry.kind is Kind.FOLDER and entry.name not in own and _has_work(entry, ids)
    return False


def _has_work(folder: Entry, ids: Ids) -> bool:
    """Tell whether a folder holds problems' folders, or files whose names tell their problems."""
    return bool(_work_in(folder, ids) or _named_files(folder.children(), ids))


def _free_name(handed_in_as: str, taken: Iterable[str]) -> str:
    """Return a name for result files that no other submission has, whatever it is called."""
    letters = unicodedata.normalize("NFKD", handed_in_as)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    safe = _UNSAFE.sub("_", bare)[:100].strip(" .") or "submission"
    lowered = {name.lower() for name in taken}
    candidates = [safe, *(f"{safe}-{n}" for n in range(2, len(lowered) + 3))]
    return next(name for name in candidates if name.lower() not in lowered)


# Where in a submission the work is


def _work_in(folder: Entry, ids: Ids) -> Entry | None:
    """Return what holds problems' folders: the folder itself or its `problems`."""
    children = folder.children()
    if any(child.name in ids and child.kind is not Kind.FILE for child in children):
        return folder
    below = [c for c in children if c.name == _PROBLEMS and c.kind is Kind.FOLDER]
    return _work_in(below[0], ids) if below and folder.name != _PROBLEMS else None


@dataclass
class _Place:
    """Where in a submission the work is.

    Attributes:
        work: what holds the problems' folders.
        notes: what to say about it.
        unused: the names of files beside it that were not used.
    """

    work: Entry
    notes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def beside(self, files: Sequence[Entry], ids: Ids) -> _Place:
        """Return this place, having said of other files that they were not used."""
        names = [file.name for file in files]
        if names:
            self.notes.append(f"Not used: {_listed(names, _CANDIDATES_SHOWN)}.{_meant(names, ids)}")
        self.unused += names
        return self


class _Unclear(Refused):
    """Files were handed in whose problems can't be known."""

    def __init__(self, text: str, files: Iterable[Entry]) -> None:
        super().__init__(text)
        self.files = tuple(files)


def _locate(folder: Entry, ids: Ids) -> _Place:
    """Return what holds the problems' folders of a submission, and what to say about that.

    It is the folder itself, its `problems`, the only folder one level down that has either, the
    files whose names tell their problems, or the only archive in it, in this order.

    Raises:
        Refused: the folder can't be read, or more than one place could be meant.
    """
    folder.check_names()
    children = folder.children()
    below = {c.name: work for c in children if (work := _work_below(c, ids))}
    beside = _told(children, ids)
    if work := _work_in(folder, ids):
        others = [*below, *beside]
        if work is folder and any(c.name == _PROBLEMS for c in children):
            others.append(_PROBLEMS)
        return _Place(work, _not_read(others), beside)
    if len(below) > 1:
        raise Refused(f"has work in {_listed(below)}; which one counts can't be known, so keep one")
    for name, work in below.items():
        usual = _is_archive_of_one_folder(folder)
        notes = [] if usual else [f"The work is one level down, in {name!a}."]
        return _Place(work, [*notes, *_not_read(beside)], beside)
    return _locate_otherwise(folder, ids)


def _not_read(names: Sequence[str]) -> list[str]:
    return [f"What is in {_listed(names)} was not read."] if names else []


def _locate_otherwise(folder: Entry, ids: Ids) -> _Place:
    """Look for work in a submission without a problem's folder, or for what went wrong.

    Raises:
        Refused: there is something, but which problem it is for can't be known.
    """
    files = _files_in(folder)
    misspelt = _is_misspelt(folder, ids)
    if not misspelt and (place := _locate_without_folders(folder, ids)):
        return place
    inner = _likely_place(folder, ids)
    if inner is folder or misspelt or _is_misspelt(inner, ids):
        return _Place(inner).beside(files, ids)
    place = _locate_without_folders(inner, ids.inside(inner.name))
    note = f"The work is one level down, in {inner.name!a}."
    found = _Place(place.work, [note, *place.notes], place.unused) if place else _Place(inner)
    return found.beside(files, ids)


def _locate_without_folders(folder: Entry, ids: Ids) -> _Place | None:
    """Return the work if it is in single files or an archive; None when there is neither."""
    files = _files_in(folder)
    archives = [c for c in files if c.kind is Kind.FILE and archive_suffix(c.name)]
    named = _named_files(files, ids)
    if len(archives) + bool(named) > 1:
        work = [*archives, *(file for found in named.values() for file in found)]
        names = _listed((c.name for c in work), _CANDIDATES_SHOWN)
        what = "work in" if named else "the archives"
        raise _Unclear(f"has {what} {names}; which one counts can't be known, so keep one", work)
    if named:
        return _locate_in_files(folder, files, named, ids)
    if archives:
        others = [c for c in files if c is not archives[0]]
        return _locate_in_archive(archives[0], ids).beside(others, ids)
    scripts = [c for c in files if c.name.lower().endswith(".py")]
    if scripts:
        raise _Unclear(_problem_unknown([c.name for c in scripts], ids), scripts)
    return None


def _files_in(folder: Entry) -> list[Entry]:
    """Return what was handed in as files, without what belongs to a tool or to the course."""
    minor = (".", "test_", "README", "timestamp.txt")
    return [
        c for c in folder.children() if c.kind is not Kind.FOLDER and not c.name.startswith(minor)
    ]


def _locate_in_files(
    folder: Entry, files: Iterable[Entry], named: dict[str, list[Entry]], ids: Ids
) -> _Place:
    """Return single files as if each stood in its problem's folder."""
    folders: list[Entry] = []
    for id, candidates in named.items():
        if len(candidates) == 1:
            own = Renamed(candidates[0], SUBMISSION_FILE)
            folders.append(Gathered(id, (own, *_folders_beside(folder, ids))))
        else:
            names = _listed((c.name for c in candidates), _CANDIDATES_SHOWN)
            fault = f"could be {names}; which one counts can't be known, so keep one"
            folders.append(Gathered(id, fault=fault))
    single = {id: found[0].name for id, found in named.items() if len(found) == 1}
    # That problem.py is the given problem's was said by the instructor.
    read = [f"{name!a} as {id}" for id, name in single.items() if name != SUBMISSION_FILE]
    notes = [f"Read by their names: {', '.join(read)}."] if read else []
    unclear = [file.name for found in named.values() if len(found) > 1 for file in found]
    others = [c for c in files if problem_of(c.name, ids) not in ids]
    return _Place(Gathered(folder.name, tuple(folders)), notes, unclear).beside(others, ids)


def _folders_beside(folder: Entry, ids: Ids) -> list[Entry]:
    """Return the folders beside a single file, if it counts as if it stood in a problem's folder.

    A copy in one of them is then told, as it is there.
    """
    if ids.bare not in ids:
        return []
    return [c for c in folder.children() if c.kind is Kind.FOLDER and c.name != SUBMISSION_FILE]


def _named_files(children: Iterable[Entry], ids: Ids) -> dict[str, list[Entry]]:
    """Return by problem the files whose names tell it; there may be several for one problem."""
    named: dict[str, list[Entry]] = {}
    for child in children:
        if child.kind is not Kind.FOLDER and (id := problem_of(child.name, ids)):
            named.setdefault(id, []).append(child)
    return {id: named[id] for id in ids if id in named}


def _told(children: Iterable[Entry], ids: Ids) -> list[str]:
    """Return the names of files that tell a problem, be it looked for or not."""
    return [c.name for c in children if c.kind is not Kind.FOLDER and problem_of(c.name, ids)]


def _meant(names: Iterable[str], ids: Ids) -> str:
    """Return a sentence about the first name that is another problem's, or nearly a problem's."""
    for name in names:
        if (other := problem_of(name, ids)) and other not in ids:
            return _for_another(name, other)
        if near := layouts.nearest_problem(name, ids):
            return f" By {name!a}, did you mean {near}? Then call it {near}.py."
    return ""


def _problem_unknown(names: Sequence[str], ids: Ids) -> str:
    stand, have = ("stands", "has no name") if len(names) == 1 else ("stand", "have no names")
    listed = _listed(names, _CANDIDATES_SHOWN)
    called = SUBMISSION_FILE if ids.bare in ids else f"{ids[0]}.py"
    which = f"which {stand} in no folder such as {ids[0]} and {have} such as {called}"
    meant = _meant(names, ids).rstrip(".")
    return f"has {listed}, {which}{'.' if meant else ''}{meant}"


def _is_archive_of_one_folder(entry: Entry) -> bool:
    """Tell whether it is what one gets who packs a folder."""
    is_archive = isinstance(entry, InArchive) and bool(archive_suffix(entry.name))
    return is_archive and sum(child.kind is Kind.FOLDER for child in entry.children()) == 1


def _work_below(entry: Entry, ids: Ids) -> Entry | None:
    if entry.kind is not Kind.FOLDER or entry.name in {_PROBLEMS, *ids, *ids.others}:
        return None
    with suppress(Refused):
        return _work_in(entry, ids)
    return None


def _locate_in_archive(archive: Entry, ids: Ids) -> _Place:
    ids = ids.inside(archive.name)
    try:
        place = _locate(_opened(archive, ids), ids)
    except _Unclear as unclear:
        raise _Unclear(
            f"has the archive {archive.name!a}, which {unclear}", unclear.files
        ) from None
    except Refused as refused:
        raise BadArchive(f"has the archive {archive.name!a}, which {refused}") from None
    place.notes.insert(0, f"The work is in the archive {archive.name!a}.")
    return place


def _likely_place(folder: Entry, ids: Ids) -> Entry:
    """Return where the problems' folders should have stood, to say what is there instead."""
    found = (c for c in folder.children() if c.kind is Kind.FOLDER)
    folders = {c.name: c for c in found if ids.inside(c.name).bare == ids.bare}
    if _PROBLEMS in folders:
        return folders[_PROBLEMS]
    if len(folders) == 1 and not _is_misspelt(folder, ids):
        return next(iter(folders.values()))
    return folder


def _misspelt(folder: Entry, ids: Ids) -> list[str]:
    """Return a sentence about folders whose names are nearly a problem's."""
    notes = []
    for child in folder.children():
        if child.kind is Kind.FOLDER and child.name not in {*ids, *ids.others}:
            for near in difflib.get_close_matches(child.name.lower(), ids, n=1, cutoff=0.8):
                notes.append(f"There is a folder {child.name!a}; did you mean {near}?")
    return notes[:_NAMES_SHOWN]


def _is_misspelt(folder: Entry, ids: Ids) -> bool:
    """Tell whether a problem's name is misspelt, so that what is there has to be asked back.

    If only one problem was handed in, that is no question: it can't have been another's.
    """
    return ids.bare not in ids and bool(_misspelt(folder, ids))


def _listed(names: Iterable[str], most: int = _NAMES_SHOWN) -> str:
    shown = sorted(names)
    more = len(shown) - most
    rest = [f"{more} more"] if more > 0 else []
    return " and ".join([*(ascii(name) for name in shown[:most]), *rest])


# What is read of one


def _read_submission(work: Work, name: str, ids: Ids) -> Submission:
    submission = Submission(name, {}, _about(work, name), work.members, work.late, work.unused)
    ids = _inside(work, ids)
    try:
        place = _locate(_opened(work.folder, ids), ids)
        folders = {child.name: child for child in place.work.children()}
    except Refused as refused:
        if isinstance(refused, _Unclear):
            submission.unused += tuple(file.name for file in refused.files)
        unread = StudentFile(None, refused.sentence(ascii(work.folder.name)), bad=True)
        submission.files = dict.fromkeys(ids, unread)
        return submission
    submission.unused += tuple(place.unused)
    submission.notes += [*place.notes, *_misspelt(place.work, ids)]
    for id in ids:
        folder = folders.get(id)
        if folder is None or folder.kind is Kind.FILE:
            submission.files[id] = StudentFile(None, _no_folder(id, folders.values(), ids))
        else:
            submission.files[id] = _read_problem(folder, id, submission.notes)
    return submission


def _inside(work: Work, ids: Ids) -> Ids:
    """Return what holds inside: the name of what was handed in may be another problem's.

    The student's own name says nothing, such as a group's number, unless it is a problem's id.
    """
    suffix = archive_suffix(work.folder.name)
    name = work.folder.name.removesuffix(suffix)
    is_students = not suffix or name == work.name
    return ids if is_students and name not in ids.others else ids.inside(name)


def _no_folder(id: str, beside: Iterable[Entry], ids: Ids) -> str:
    """Return why a problem has no file: its folder isn't there, but maybe another's."""
    if ids.bare not in ids:
        return f"There is no folder {id} in the submission."
    names = [entry.name for entry in beside if entry.kind is Kind.FOLDER]
    other = next(
        (_for_another(n, ids.inside(n).bare) for n in names if ids.inside(n).bare != id), ""
    )
    return f"There is no {SUBMISSION_FILE} and no folder {id} in the submission.{other}"


def _for_another(name: str, problem: str) -> str:
    return f" {name!a} is for {problem}, which is not graded now."


def _about(work: Work, name: str) -> list[str]:
    """Return what to say of a submission before it is looked into."""
    notes = [] if work.name == name else [f"It was handed in as {work.name!a}."]
    if len(work.members) > 1:
        notes.append(f"A group of {len(work.members)}: {', '.join(map(ascii, work.members))}.")
    if work.late:
        notes.append("It was handed in late.")
    return [*notes, *work.notes]


def _read_problem(folder: Entry, id: str, notes: list[str]) -> StudentFile:
    """Read one problem's file; add to the notes what else could have been meant."""
    try:
        inside = {child.name: child for child in folder.children()}
    except Refused as refused:
        return StudentFile(None, refused.sentence(id), bad=True)
    copies = _copies(inside.values())
    if SUBMISSION_FILE not in inside:
        near = (
            f" There is {_listed(copies)}: it has to be called {SUBMISSION_FILE} and stand in {id} "
            "itself."
        )
        missing = f"There is no {SUBMISSION_FILE} in {id}.{near if copies else ''}"
        return StudentFile(None, missing)
    if copies:
        notes.append(f"{id}: {SUBMISSION_FILE} was read, but not {_listed(copies)}.")
    return _read_file(inside[SUBMISSION_FILE], id)


def _copies(inside: Iterable[Entry]) -> list[str]:
    """Return the files that could have been meant. Which one was, only the student knows."""
    copies = []
    for child in inside:
        if child.kind is Kind.FILE and _is_near(child.name):
            copies.append(child.name)
        elif child.kind is Kind.FOLDER:
            with suppress(Refused):
                names = {below.name for below in child.children()}
                copies += [f"{child.name}/{SUBMISSION_FILE}"] if SUBMISSION_FILE in names else []
    return copies


def _is_near(name: str) -> bool:
    """Tell whether a name is nearly `problem.py`, or that of a copy of it."""
    if name == SUBMISSION_FILE or name.startswith("test_"):
        return False
    stem, ending = SUBMISSION_FILE.split(".")
    is_copy = stem in name.lower() and name.lower().endswith(f".{ending}")
    return is_copy or difflib.SequenceMatcher(None, name, SUBMISSION_FILE).ratio() > 0.8


def _read_file(file: Entry, folder_name: str) -> StudentFile:
    try:
        return StudentFile(file.read(MAX_SOURCE_BYTES))
    except Refused as refused:
        reason = refused.sentence(f"{file.name} in {folder_name}")
        return StudentFile(None, reason, bad=True)


# What is said of all of it


def _summary(layout: Layout, submissions: Sequence[Submission]) -> str:
    """Return one line about a platform's download."""
    students = sum(max(1, len(s.members)) for s in submissions)
    late = sum(s.late for s in submissions)
    unused = len(layout.unmatched) + sum(len(s.unused) for s in submissions)
    parts = [counted(students, "student")]
    if students != len(submissions):
        parts[0] += f" in {counted(len(submissions), 'submission')}"
    parts += [f"{late} late"] if late else []
    parts += [f"{counted(unused, 'file')} not used"] if unused else []
    return f"{layout.title}: {', '.join(parts)}."


def _bare_files(submissions: Iterable[Submission], ids: Ids) -> list[str]:
    """Return a hint if there are files that could be used if their problem were given."""
    count = sum(any(map(layouts.is_bare, submission.unused)) for submission in submissions)
    return [_name_it(count, ids)] if count and not ids.bare else []


def _name_it(count: int, ids: Ids) -> str:
    have = f"{counted(count, 'submission')} {'has' if count == 1 else 'have'}"
    return f"{have} a {SUBMISSION_FILE} that tells no problem. {_NAME_IT.format(ids[0])}."


def _same_name(handed_in_as: str, name: str, path: Path, origins: dict[str, Path]) -> list[str]:
    """Return a sentence if another path holds a submission of the same name."""
    safe = _free_name(handed_in_as, [])
    first = next((known for known in origins if known.lower() == safe.lower()), name)
    if first == name or origins[first] == path:
        return []
    return [
        f"{safe} is in {str(origins[first])!a} and in {str(path)!a}: graded as {first} and {name}."
    ]


def _in_several(submissions: Iterable[Submission]) -> list[str]:
    """Return a sentence about each person with more than one submission."""
    works: dict[str, list[str]] = {}
    for submission in submissions:
        for member in submission.members:
            works.setdefault(member, []).append(submission.name)
    return [
        f"{member!a} is a member of {' and '.join(names)}; the gradebook has a row for each."
        for member, names in works.items()
        if len(names) > 1
    ]
