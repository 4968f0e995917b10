"""Recognise the downloads of learning platforms, which the table `PLATFORMS` describes.

A row maps the names of files or folders to students. Only the platform's list of students is
read, and nothing is guessed: entries that match no student are reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from grader.intake.layout import Layout, Work, handed_in, typed_online
from grader.intake.problem_names import Problems, before_reupload, did_you_mean, is_bare
from grader.intake.student_lists import (
    METADATA,
    METADATA_BYTES,
    SCORES,
    SCORES_BYTES,
    Listed,
    iso_time,
    on_github,
    read_metadata,
    read_scores,
)
from grader.intake.tree import Kind, Refused, TreeEntry, archive_suffix, gathered, without_suffix
from grader.text import counted, quoted, some

Upload = tuple[TreeEntry, re.Match[str]]
"""A file or folder of a download, and the match of its name."""

_SHOWN = 5


@dataclass(frozen=True)
class Download:
    """A folder that may be a platform's download.

    Attributes:
        name: its name.
        children: its entries.
        beside: the entries next to it, if it is the only folder in the instructor's path.
    """

    name: str
    children: Sequence[TreeEntry]
    beside: Sequence[TreeEntry] = ()


@dataclass(frozen=True)
class NamedUploads:
    """A platform that writes the student into the name of a file or folder.

    Attributes:
        title: the name of a download in messages.
        names: the patterns of names; more than half of the entries match one of them.
        takes_folders: whether a folder may be such an upload.
        whose: the groups of the patterns that identify the student.
        work: returns the submission of one student.
        is_sure: returns whether uploads are certainly those of the platform.
    """

    title: str
    names: Sequence[re.Pattern[str]]
    takes_folders: bool
    whose: Sequence[str]
    work: Callable[[Sequence[Upload], Problems], Work]
    is_sure: Callable[[Sequence[Upload]], bool] = lambda uploads: True

    lists: ClassVar[Mapping[str, int]] = {}

    def may_hold(self, part: TreeEntry) -> bool:
        """Return whether an entry may belong to such a download, by its name."""
        return self._said(part) is not None

    def look(self, download: Download, problems: Problems) -> Layout | None:
        """Return who handed in what; None if it is no such download."""
        uploads = [(child, said) for child in download.children if (said := self._said(child))]
        if len(uploads) * 2 <= len(download.children) or not self.is_sure(uploads):
            return None
        unclear = self._unclear(uploads)
        students: dict[tuple[str, ...], list[Upload]] = {}
        for child, said in uploads:
            if said["id"] not in unclear:
                key = tuple(said[group] for group in self.whose)
                students.setdefault(key, []).append((child, said))
        used = {child.name for own in students.values() for child, _ in own}
        notes = [
            f"User {id} is called {' and '.join(map(quoted, names))}; whose that is can't be known."
            for id, names in unclear.items()
        ]
        works = [self.work(own, problems) for own in students.values()]
        layout = Layout(self.title, works, notes=notes)
        return layout.with_others(each for each in download.children if each.name not in used)

    def _said(self, entry: TreeEntry) -> re.Match[str] | None:
        if entry.kind is Kind.FOLDER and not self.takes_folders:
            return None
        return next((m for each in self.names if (m := each.fullmatch(entry.name))), None)

    def _unclear(self, uploads: Sequence[Upload]) -> dict[str, list[str]]:
        """Return ids with two names, if the id alone identifies the student."""
        if "name" in self.whose:
            return {}
        names: dict[str, set[str]] = {}
        for _, said in uploads:
            names.setdefault(said["id"], set()).add(said["name"])
        return {id: sorted(called) for id, called in names.items() if len(called) > 1}


@dataclass(frozen=True)
class ListedFolders:
    """A platform that writes a list of students next to their folders.

    Attributes:
        title: the name of a download in messages.
        list: the name of the list.
        most: the largest size in bytes at which the list is read.
        folders: returns the folders by their keys in the list; None if it is no such download.
        read: returns the lines of a list by key. It may raise Refused.
        unlisted: returns a line for a folder that is not on the list.
    """

    title: str
    list: str
    most: int
    folders: Callable[[Download], dict[str, TreeEntry] | None]
    read: Callable[[bytes], Mapping[str, Listed]]
    unlisted: Callable[[str], Listed]

    @property
    def lists(self) -> Mapping[str, int]:
        """By the names of lists of students, the most bytes that are read of one."""
        return {self.list: self.most}

    def may_hold(self, part: TreeEntry) -> bool:
        """Return whether an entry may belong to such a download."""
        return part.kind is Kind.FOLDER

    def look(self, download: Download, problems: Problems) -> Layout | None:
        """Return who handed in what; None if it is no such download."""
        folders = self.folders(download)
        if not folders:
            return None
        layout = Layout(self.title, [])
        known: Mapping[str, Listed] | None = None
        try:
            known = self._read_list([*download.children, *download.beside])
        except Refused as refused:
            text = refused.sentence(self.list)
            layout.notes = [f"{text} Submissions go by the names of their folders, without times."]
        lines = {key.lower(): line for key, line in (known or {}).items()}
        left = {key: line for key, line in lines.items() if key not in map(str.lower, folders)}
        for key, folder in folders.items():
            line, note = lines.get(key.lower()), ""
            if known is not None and line is None:
                near = did_you_mean(key, [each.key for each in left.values()])
                note = f"{quoted(folder.name)} is not in {self.list}.{near}"
            layout.works.append(_listed_work(folder, line or self.unlisted(key), note))
        for line in left.values():
            note = f"{quoted(line.key)} is in {self.list}, but there is no such folder."
            layout.works.append(_listed_work(gathered(line.key, ()), line, note))
        unread = [f"{line.name} ({line.time})" for line in lines.values() if line.is_time_unread]
        if unread:
            count = counted(len(unread), "submission")
            layout.notes.append(
                f"The time of {count} could not be read: {some(unread, _SHOWN)}. "
                "Whether these are late is not known."
            )
        used = {folder.name for folder in folders.values()}
        others = (each for each in download.children if each.name not in {*used, self.list})
        return layout.with_others(others)

    def _read_list(self, entries: Sequence[TreeEntry]) -> Mapping[str, Listed] | None:
        found = [entry for entry in entries if entry.name == self.list]
        if len(found) > 1:
            raise Refused("is there twice; which one counts can't be known, so keep one")
        return self.read(found[0].read(self.most)) if found else None


def _listed_work(folder: TreeEntry, line: Listed, note: str) -> Work:
    notes = (note,) if note else ()
    time = iso_time(line.time)
    return Work(line.identity, line.name, folder, line.members, handed_in=time, notes=notes)


# Canvas: `lovelaceada_LATE_<user>_<attachment>_problem.py`, all files in one folder. Without names
# it is `anon_<id>_...` and `LATE_anon_<id>_...`; some versions had the words the other way around.

_CANVAS = r"_(?:(?P<attachment>[1-9]\d*)_(?P<file>.+)|(?P<typed>text|link)\.html)"
_CANVAS_NAMES = (
    re.compile(r"(?P<late>LATE_)?(?P<name>anon)_(?P<id>(?!LATE_)[A-Za-z0-9]+)" + _CANVAS, re.S),
    re.compile(r"(?P<name>anon)(?P<late>_LATE)_(?P<id>[A-Za-z0-9]+)" + _CANVAS, re.S),
    re.compile(r"(?P<name>.+?)(?P<late>_LATE)?_(?P<id>[1-9]\d*)" + _CANVAS, re.S),
)

Versions = Sequence[tuple[TreeEntry, str]]
"""What one student uploaded for one file, the newest last, each as it was called then."""


def _is_canvas(uploads: Sequence[Upload]) -> bool:
    """Return whether most numbers are of attachments, which are never there twice, and of users."""
    attachments = Counter(said["attachment"] for _, said in uploads if said["attachment"])
    twice = sum(number > 1 for number in attachments.values())
    users: dict[str, set[str]] = {}
    for _, said in uploads:
        users.setdefault(said["id"], set()).add(said["name"])
    unclear = sum(len(names) > 1 for names in users.values())
    return unclear * 2 < len(users) and (twice * 2 < len(attachments) or not attachments)


def _canvas_work(files: Sequence[Upload], problems: Problems) -> Work:
    first = files[0][1]
    uploads = [(child, said) for child, said in files if said["file"]]
    versions = _versions(sorted(uploads, key=lambda each: int(each[1]["attachment"])), problems)
    entries = [found[-1][0].renamed(called) for called, found in versions.items()]
    notes = [note for called, found in versions.items() if (note := _reuploads(called, found))]
    typed = [said["typed"] for _, said in files if said["typed"]]
    older = (name for found in versions.values() for _, name in found[:-1])
    return Work(
        f"canvas:{first['id']}",
        f"anon {first['id']}" if first["name"] == "anon" else first["name"],
        handed_in(first["name"], entries),
        members=(first["id"],),
        late=any(said["late"] for _, said in files),
        notes=(*notes, *map(typed_online, typed)),
        unused=(*(f"{kind}.html" for kind in typed), *older),
        parts=tuple(child.name for child, _ in files),
    )


def _versions(uploads: Sequence[Upload], problems: Problems) -> Mapping[str, Versions]:
    """Return uploads by their first name; Canvas renames later versions, as to `hw-1.zip`."""
    names = {said["file"] for _, said in uploads}
    versions: dict[str, list[tuple[TreeEntry, str]]] = {}
    for child, said in uploads:
        before = before_reupload(said["file"])
        is_archive = archive_suffix(before) and before in names
        is_known = problems.of_file(before) or is_bare(before) or is_archive
        is_copy = is_known and not problems.of_file(said["file"])
        called = before if is_copy else said["file"]
        versions.setdefault(called, []).append((child, said["file"]))
    return versions


def _reuploads(called: str, found: Versions) -> str:
    """Return a sentence about which of several uploads counts; empty if there was only one."""
    *older, newest = [quoted(name) for _, name in found]
    if older:
        left = " and ".join(older)
        return f"{newest} was read, the newest upload of {quoted(called)}, but not {left}."
    renamed = newest != quoted(called)
    return f"{newest} was read as {quoted(called)}, uploaded again." if renamed else ""


# Moodle: `Ada Lovelace_<id>_assignsubmission_file_`, as folders or before each file's name. Those
# who are in no group are one, which has no number.

_MOODLE = r"_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?"
_MOODLE_NAME = r"(?P<name>(?:(?!_assignsubmission_).)+?)"
_MOODLE_NAMES = (
    re.compile(_MOODLE_NAME + r"_(?P<id>\d+)" + _MOODLE, re.S),
    re.compile(_MOODLE_NAME + r"(?P<id>)" + _MOODLE, re.S),
)


def _moodle_work(found: Sequence[Upload], problems: Problems) -> Work:
    name, id = found[0][1]["name"], found[0][1]["id"]
    entries: list[TreeEntry] = []
    typed = []
    for child, said in found:
        if said["kind"] != "file":
            typed.append(said["kind"])
        elif said["file"]:
            entries.append(child.renamed(said["file"]))
        else:
            entries += _children_or_itself(child)
    return Work(
        f"moodle:{id or f'group {name}'}",
        f"{name} {id}" if name in ("Participant", "Group") else name,
        handed_in(name, entries),
        # Moodle's grading worksheet uses this name, with and without anonymous submissions.
        members=(f"Participant {id}",) if id else (name,),
        notes=tuple(map(typed_online, typed)),
        unused=tuple(typed),
        parts=tuple(child.name for child, _ in found),
    )


def _children_or_itself(entry: TreeEntry) -> list[TreeEntry]:
    """Return the entries of a folder, or the entry itself if it cannot be read."""
    with suppress(Refused):
        return entry.children()
    return [entry]


# Gradescope: folders such as `submission_123/`; `submission_metadata.yml` lists their students.


def _gradescope_folders(download: Download) -> dict[str, TreeEntry] | None:
    if all(child.name != METADATA for child in download.children):
        return None
    return {child.name: child for child in download.children if not child.is_plain_file}


def _not_on_gradescope(name: str) -> Listed:
    return Listed(name, f"gradescope:{name}", name)


# Classroom 50: a folder `<slug>_submissions_<time>` of clones, `<slug>-<user name>/`, and
# `scores.csv` says when each submission came. Groups have numbers that are another group's in the
# next assignment.

_CLONES = re.compile(r"(.+)_submissions_\d{4}(?:_\d\d){2}_T(?:_\d\d){3}")
_GROUP = re.compile(r"group-\d+")


def _clones(download: Download) -> dict[str, TreeEntry] | None:
    match = _CLONES.fullmatch(without_suffix(download.name))
    if not match:
        return None
    found = {}
    for child in download.children:
        prefix, user = child.name[: len(match[1]) + 1], child.name[len(match[1]) + 1 :]
        if child.kind is Kind.FOLDER and prefix == f"{match[1]}-" and user:
            found[child.name if _GROUP.fullmatch(user) else user] = child
    return found


PLATFORMS: Sequence[NamedUploads | ListedFolders] = (
    ListedFolders(
        "Gradescope export",
        METADATA,
        METADATA_BYTES,
        _gradescope_folders,
        read_metadata,
        _not_on_gradescope,
    ),
    NamedUploads("Moodle download", _MOODLE_NAMES, True, ("name", "id"), _moodle_work),
    NamedUploads("Canvas download", _CANVAS_NAMES, False, ("id",), _canvas_work, _is_canvas),
    ListedFolders("Classroom 50 clones", SCORES, SCORES_BYTES, _clones, read_scores, on_github),
)
"""In the order in which they are tried."""

LISTS = {name: most for platform in PLATFORMS for name, most in platform.lists.items()}
"""By the names of lists of students, the most bytes that are read of one."""


def recognise(found: TreeEntry, problems: Problems) -> Layout | None:
    """Return the submissions of a folder if it, or its only subfolder, is a platform's download.

    Args:
        found: the folder, or an opened archive.
        problems: the problems of the course.
    """
    for download in _places(found):
        for platform in PLATFORMS:
            if layout := platform.look(download, problems):
                return layout
    return None


def recognise_part(
    part: TreeEntry, around: TreeEntry, above: TreeEntry, problems: Problems
) -> Layout | None:
    """Return the submission of one student if the folder around it is a platform's download.

    Args:
        part: the student's folder or archive.
        around: the folder that contains it. Its other entries are read only if the name of the
            part may belong to such a download.
        above: the folder that contains `around`.
        problems: the problems of the course.
    """
    for platform in [each for each in PLATFORMS if each.may_hold(part)]:
        download = Download(around.name, around.children(), above.children())
        if layout := platform.look(download, problems):
            own = [work for work in layout.works if part.name in (*work.parts, work.folder.name)]
            return Layout("", own) if len(own) == 1 else None
    return None


def _places(found: TreeEntry) -> Iterator[Download]:
    children = found.children()
    yield Download(found.name, children)
    inside = [child for child in children if not child.is_plain_file]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # the unreadable folder may be one student's
            yield Download(inside[0].name, inside[0].children(), children)
