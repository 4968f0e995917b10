"""Recognise downloads of learning platforms.

Each entry of the table `PLATFORMS` describes how a platform indicates students by the names of
files or folders. This module reads only the platform's list of students, not the students' files.
Files and folders that match no student are reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import yaml

from grader.csv_table import parse_table
from grader.errors import UsageError
from grader.intake.handed_in import Layout, UnreadSubmission
from grader.intake.identity import did_you_mean, folder_identity
from grader.intake.problem_names import Problems, before_reupload, is_bare
from grader.intake.tree import (
    Kind,
    Refused,
    TreeEntry,
    archive_suffix,
    virtual_folder,
    without_suffix,
)
from grader.text import counted, quoted, some

METADATA = "submission_metadata.yml"
"""The list of students in Gradescope's export. It also contains the results of autograders."""

SCORES = "scores.csv"
"""The list of students next to the cloned repositories of Classroom 50."""

LISTS = {METADATA: 100_000_000, SCORES: 5_000_000}
"""The names of the platforms' lists, and the maximum size of each file in bytes."""

Listed = Mapping[str, UnreadSubmission]
"""Maps each key in a platform's list to a submission. The submission's `folder` is not set yet."""

Upload = tuple[TreeEntry, re.Match[str]]
"""A file or folder of a download, and the match of its name with a pattern of the platform."""

_SHOWN = 5


def plain_submission(entry: TreeEntry, *notes: str, is_archive: bool = False) -> UnreadSubmission:
    """Return the submission in a folder or archive that matches no student on a platform.

    The submission has the name of the folder or archive.

    Args:
        entry: a folder or an archive.
        notes: sentences about the submission.
        is_archive: whether `entry` is an opened archive.
    """
    name = entry.name
    if is_archive or entry.kind is not Kind.FOLDER:
        name = without_suffix(name) or name
    return UnreadSubmission(folder_identity(name), name, entry, notes=notes)


def unmatched_file(name: str, known: Iterable[str] = ()) -> str:
    """Return a sentence about a file that matches no student."""
    return f"{quoted(name)} was not used: it matches no student.{did_you_mean(name, known)}"


def _add_unmatched(layout: Layout, others: Iterable[TreeEntry]) -> Layout:
    """Add entries that match no student to a layout.

    A plain file is only reported. Each other entry becomes a submission.
    """
    names = [each.name for each in layout.submissions]
    for entry in others:
        if entry.is_plain_file:
            layout.unmatched.append(unmatched_file(entry.name, names))
        else:
            note = f"Its name matches no student.{did_you_mean(entry.name, names)}"
            layout.submissions.append(plain_submission(entry, note))
    return layout


@dataclass(frozen=True)
class NamedUploads:
    """A platform that writes the student's name or number in the name of a file or folder.

    Attributes:
        title: the name of a download in messages.
        names: patterns for the names of a download's entries. A download is recognised only if more
            than half of its entries match a pattern.
        takes_folders: whether the names of folders are compared with the patterns.
        identity: a function that takes a match and returns the student's identity.
        submission: a function that takes all uploads of one student and returns the submission.
    """

    title: str
    names: Sequence[re.Pattern[str]]
    takes_folders: bool
    identity: Callable[[re.Match[str]], str]
    submission: Callable[[Sequence[Upload], Problems], UnreadSubmission]

    def look(self, download: TreeEntry, problems: Problems) -> Layout | None:
        """Return the submissions in a download, or None if it is not a download of the platform."""
        uploads = [(child, match) for child in download.children() if (match := self._match(child))]
        students: dict[str, list[Upload]] = {}
        for child, match in uploads:
            students.setdefault(self.identity(match), []).append((child, match))
        names = {
            id: sorted({match["name"] for _, match in uploads_of_one})
            for id, uploads_of_one in students.items()
        }
        unclear = {id for id in students if len(names[id]) > 1}
        are_few = len(uploads) * 2 <= len(download.children())
        if are_few or len(unclear) * 2 >= len(students) or _are_repeated(uploads):
            return None
        clear = [uploads_of_one for id, uploads_of_one in students.items() if id not in unclear]
        notes = [
            f"User {students[id][0][1]['id']} has several names: "
            f"{' and '.join(map(quoted, names[id]))}."
            for id in students
            if id in unclear
        ]
        layout = Layout(
            self.title,
            [self.submission(uploads_of_one, problems) for uploads_of_one in clear],
            notes=notes,
        )
        used = {child.name for uploads_of_one in clear for child, _ in uploads_of_one}
        return _add_unmatched(
            layout, (each for each in download.children() if each.name not in used)
        )

    def _match(self, entry: TreeEntry) -> re.Match[str] | None:
        if entry.kind is Kind.FOLDER and not self.takes_folders:
            return None
        return next((m for each in self.names if (m := each.fullmatch(entry.name))), None)


def _are_repeated(uploads: Sequence[Upload]) -> bool:
    """Return whether at least half of the numbers of attachments occur more than once.

    In a Canvas download, each attachment has a different number.
    """
    fields = [match.groupdict() for _, match in uploads]
    numbers = Counter(each["attachment"] for each in fields if each.get("attachment"))
    return bool(numbers) and sum(n > 1 for n in numbers.values()) * 2 >= len(numbers)


@dataclass(frozen=True)
class ListedFolders:
    """A platform that writes a list of students next to their folders.

    Attributes:
        title: the name of a download in messages.
        list: the name of the file with the list.
        folders: a function that returns a dictionary from keys in the list to folders. For a folder
            that is not a download of the platform, the dictionary is empty.
        read: a function that returns the submissions on the list. It may raise Refused.
        unlisted: a function that returns the submission for a key that is not on the list.
    """

    title: str
    list: str
    folders: Callable[[TreeEntry], dict[str, TreeEntry]]
    read: Callable[[bytes], Listed]
    unlisted: Callable[[str], UnreadSubmission]

    def look(self, download: TreeEntry, problems: Problems) -> Layout | None:
        """Return the submissions in a download, or None if it is not a download of the platform."""
        folders = self.folders(download)
        if not folders:
            return None
        layout = Layout(self.title, [])
        listed: Listed | None = None
        try:
            lists = [entry for entry in download.children() if entry.name == self.list]
            listed = self.read(lists[0].read(LISTS[self.list])) if lists else None
        except Refused as refused:
            text = refused.sentence(self.list)
            layout.notes = [
                f"{text} Therefore the names of folders are used, and times are unknown."
            ]
        lines = {key.lower(): (key, each) for key, each in (listed or {}).items()}
        keys = {key.lower() for key in folders}
        left = [line for key, line in lines.items() if key not in keys]
        for key, folder in folders.items():
            _, line = lines.get(key.lower(), ("", None))
            note = ""
            if listed is not None and line is None:
                near = did_you_mean(key, [key for key, _ in left])
                note = f"{quoted(folder.name)} is not in {self.list}.{near}"
            layout.submissions.append(_noted(line or self.unlisted(key), note, folder))
        for key, line in left:
            note = f"{quoted(key)} is in {self.list}, but its folder is missing."
            layout.submissions.append(_noted(line, note, virtual_folder(key, ())))
        layout.notes += _about_times(layout.submissions)
        used = {self.list, *(folder.name for folder in folders.values())}
        return _add_unmatched(
            layout, (each for each in download.children() if each.name not in used)
        )


def _noted(submission: UnreadSubmission, note: str, folder: TreeEntry) -> UnreadSubmission:
    return replace(submission, folder=folder, notes=(note,) if note else ())


def _about_times(submissions: Iterable[UnreadSubmission]) -> list[str]:
    timed = (each for each in submissions if each.time)
    unclear = [f"{each.name} ({each.time})" for each in timed if not iso_time(each.time)]
    if not unclear:
        return []
    return [
        f"The time of {counted(len(unclear), 'submission')} could not be read, so lateness is "
        f"unknown: {some(unclear, _SHOWN)}."
    ]


def iso_time(text: str) -> str:
    """Convert a time to ISO 8601. Return "" if it can't be parsed.

    A time without a zone is taken as UTC, because some platforms write UTC without a zone.
    """
    text = re.sub(r"(?<=\d) ?(?:UTC|GMT)\Z", "Z", text.strip())
    with suppress(ValueError):
        if ":" in text:  # a date without a time has no colon
            time = datetime.fromisoformat(re.sub(r" (?=[-+Z])", "", text))
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
    return ""


# Canvas: `lovelaceada_LATE_<user>_<attachment>_problem.py`, all files in one folder. Anonymous
# files are `anon_<id>_...` or `LATE_anon_<id>_...`; some versions have these words in the other
# order.

_CANVAS = r"_(?:(?P<attachment>[1-9]\d*)_(?P<file>.+)|(?P<typed>text|link)\.html)"
_CANVAS_NAMES = (
    re.compile(r"(?P<late>LATE_)?(?P<name>anon)_(?P<id>(?!LATE_)[A-Za-z0-9]+)" + _CANVAS, re.S),
    re.compile(r"(?P<name>anon)(?P<late>_LATE)_(?P<id>[A-Za-z0-9]+)" + _CANVAS, re.S),
    re.compile(r"(?P<name>.+?)(?P<late>_LATE)?_(?P<id>[1-9]\d*)" + _CANVAS, re.S),
)

Versions = Sequence[tuple[TreeEntry, str]]
"""The versions of a student's file from old to new, as (file, name on the platform) pairs."""


def _on_canvas(match: re.Match[str]) -> str:
    return f"canvas:{match['id']}"


def _canvas_submission(uploads: Sequence[Upload], problems: Problems) -> UnreadSubmission:
    first = uploads[0][1]
    files = [(child, match) for child, match in uploads if match["file"]]
    versions = _versions(sorted(files, key=lambda each: int(each[1]["attachment"])), problems)
    entries = [same[-1][0].renamed(name) for name, same in versions.items()]
    notes = [note for name, same in versions.items() if (note := _reuploads(name, same))]
    typed = [match["typed"] for _, match in uploads if match["typed"]]
    older = (name for same in versions.values() for _, name in same[:-1])
    return UnreadSubmission(
        _on_canvas(first),
        f"anon {first['id']}" if first["name"] == "anon" else first["name"],
        _folder_of(first["name"], entries),
        members=(first["id"],),
        late=any(match["late"] for _, match in uploads),
        notes=(*notes, *map(_typed_online, typed)),
        unused=(*(f"{kind}.html" for kind in typed), *older),
    )


def _versions(uploads: Sequence[Upload], problems: Problems) -> Mapping[str, Versions]:
    """Return the versions of each file, by the original name of the file.

    Canvas renames later versions, for example to `hw-1.zip`.
    """
    names = {match["file"] for _, match in uploads}
    versions: dict[str, list[tuple[TreeEntry, str]]] = {}
    for child, match in uploads:
        before = before_reupload(match["file"])
        is_archive = archive_suffix(before) and before in names
        is_known = problems.of_file(before) or is_bare(before) or is_archive
        is_copy = is_known and not problems.of_file(match["file"])
        name = before if is_copy else match["file"]
        versions.setdefault(name, []).append((child, match["file"]))
    return versions


def _reuploads(name: str, versions: Versions) -> str:
    """Return a sentence about the version that is read, which is the newest version.

    Return "" if there is only one version and the platform did not change its name.
    """
    *older, newest = [quoted(name) for _, name in versions]
    if older:
        left = " and ".join(older)
        return (
            f"{newest} was read, because it is the newest upload of {quoted(name)}. Not read: "
            f"{left}."
        )
    is_renamed = newest != quoted(name)
    return f"{newest} was read as a new upload of {quoted(name)}." if is_renamed else ""


# Moodle: `Ada Lovelace_<id>_assignsubmission_file_`, as the name of a folder or before each file's
# name. All students without a group submit as one group without a number.

_MOODLE = r"_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?"
_MOODLE_NAME = r"(?P<name>(?:(?!_assignsubmission_).)+?)"
_MOODLE_NAMES = (
    re.compile(_MOODLE_NAME + r"_(?P<id>\d+)" + _MOODLE, re.S),
    re.compile(_MOODLE_NAME + r"(?P<id>)" + _MOODLE, re.S),
)


def _on_moodle(match: re.Match[str]) -> str:
    return f"moodle:{match['id'] or 'group ' + match['name']}"


def _moodle_submission(uploads: Sequence[Upload], problems: Problems) -> UnreadSubmission:
    first = uploads[0][1]
    name, id = first["name"], first["id"]
    entries: list[TreeEntry] = []
    typed = [match["kind"] for _, match in uploads if match["kind"] != "file"]
    for child, match in uploads:
        if match["kind"] == "file":
            entries += [child.renamed(match["file"])] if match["file"] else _inside(child)
    return UnreadSubmission(
        _on_moodle(first),
        f"{name} {id}" if name in ("Participant", "Group") else name,
        _folder_of(name, entries),
        # Moodle's grading worksheet uses this name, even if submissions are not anonymous.
        members=(f"Participant {id}",) if id else (name,),
        notes=tuple(map(_typed_online, typed)),
        unused=tuple(typed),
    )


def _inside(entry: TreeEntry) -> list[TreeEntry]:
    """Return the entries of a folder. If it can't be read, return the folder itself."""
    with suppress(Refused):
        return entry.children()
    return [entry]


def _folder_of(name: str, entries: Sequence[TreeEntry]) -> TreeEntry:
    """Return a folder with all entries. If the only entry is an archive, return the archive."""
    if len(entries) == 1 and entries[0].is_archive:
        return entries[0]
    counts = Counter(entry.name for entry in entries)
    twice = [entry for entry, count in counts.items() if count > 1]
    fault = (
        f"contains {quoted(twice[0])} more than once, so no version can be chosen" if twice else ""
    )
    return virtual_folder(name, entries, fault)


def _typed_online(kind: str) -> str:
    """Return a sentence about a submission without a file.

    Args:
        kind: the platform's name for the type of the submission.
    """
    kinds = {"text": "A text typed online", "link": "A link", "onlinetext": "A text typed online"}
    return f"{kinds.get(kind, f'A submission of type {kind}')} was submitted, which is not graded."


# Gradescope: folders such as `submission_123/`. `submission_metadata.yml` lists their students.

_MAX_YAML = 5_000_000  # enough for 20,000 students if the results are left out
_KEPT = ("  :submitters:", "  :created_at:")


def _gradescope_folders(download: TreeEntry) -> dict[str, TreeEntry]:
    if all(child.name != METADATA for child in download.children()):
        return {}
    return {child.name: child for child in download.children() if not child.is_plain_file}


def _not_on_gradescope(folder: str) -> UnreadSubmission:
    return UnreadSubmission(f"gradescope:{folder}", folder)


def read_metadata(content: bytes) -> Listed:
    """Map the names of folders to the submissions on Gradescope's list.

    Raises:
        Refused: the content is not a list in Gradescope's format.
    """
    try:
        text = _without_results(content.decode("utf-8-sig"))
        if len(text) > _MAX_YAML:
            raise Refused(f"lists more than {_MAX_YAML:,} characters of names")
        # BaseLoader is the strictest loader: it creates only text, lists and mappings.
        data = yaml.load(text, Loader=yaml.BaseLoader)
        return {key: _on_gradescope(key, value) for key, value in data.items()}
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError):
        raise Refused("is not a list of submissions in Gradescope's format") from None


def _without_results(text: str) -> str:
    """Return the YAML text without the results of autograders, which are long.

    Results contain the output of students' code.
    """
    kept: list[str] = []
    is_kept = True
    for line in text.split("\n"):
        if re.match(r"\S|  :", line):  # the first line of a submission or of a field
            is_kept = line.startswith(_KEPT) or not line.startswith(" ")
        if is_kept:
            kept.append(line)
    return "\n".join(kept)


def _on_gradescope(key: str, value: Any) -> UnreadSubmission:
    fields = value if isinstance(value, dict) else {}
    people, time = fields.get(":submitters"), fields.get(":created_at")
    submitters = [_submitter(each) for each in people] if isinstance(people, list) else []
    accounts = sorted(account for _, _, account in submitters)
    return UnreadSubmission(
        f"gradescope:{'+'.join(accounts) if accounts and all(accounts) else key}",
        " + ".join(name for name, _, _ in submitters) or key,
        members=tuple(member for _, member, _ in submitters),
        time=time if isinstance(time, str) else "",
    )


def _submitter(person: Any) -> tuple[str, str, str]:
    """Return the name, the id in the gradebook, and the account of a student."""
    name, email, sid = (str(person.get(key) or "") for key in (":name", ":email", ":sid"))
    return name or email or sid, email or sid or name, email.lower() or sid


# Classroom 50: a folder `<slug>_submissions_<time>` of cloned repositories, `<slug>-<user name>/`.
# `scores.csv` contains the time of each submission. Groups are numbered anew in each
# assignment, so a number does not identify a group.

_CLONES = re.compile(r"(.+)_submissions_\d{4}(?:_\d\d){2}_T(?:_\d\d){3}")
_GROUP = re.compile(r"group-\d+")
_NEEDED = ("username", "datetime", "submission_tag")


def _clones(download: TreeEntry) -> dict[str, TreeEntry]:
    match = _CLONES.fullmatch(without_suffix(download.name))
    if not match:
        return {}
    folders = {}
    for child in download.children():
        prefix, user = child.name[: len(match[1]) + 1], child.name[len(match[1]) + 1 :]
        if child.kind is Kind.FOLDER and prefix == f"{match[1]}-" and user:
            folders[child.name if _GROUP.fullmatch(user) else user] = child
    return folders


def read_scores(content: bytes) -> Listed:
    """Return the submissions on the list of Classroom 50, by user name in lower case.

    The list has a line for each attempt, the newest first. A line for marks given by hand contains
    the time of marking instead of the submission time. `review_url` names the repository, but is
    ignored, because students can change it.

    Raises:
        Refused: the content is not a list in the format of Classroom 50.
    """
    listed: dict[str, UnreadSubmission] = {}
    for row in _rows(content):
        user = row["username"]
        known = listed.get(user.lower())
        if user and not (known and known.time):
            is_manual = row["submission_tag"].startswith("submit/manual-")
            listed[user.lower()] = on_github(user, "" if is_manual else row["datetime"])
    return listed


def on_github(user: str, time: str = "") -> UnreadSubmission:
    """Return the submission of a user of GitHub. `user` is the user name."""
    return UnreadSubmission(f"github:{user.lower()}", user, members=(user,), time=time)


def _rows(content: bytes) -> list[dict[str, str]]:
    """Return a dictionary from column names to cells for each line of a CSV list."""
    try:
        table = parse_table(content, "the list")
        if missing := [column for column in _NEEDED if column not in table.columns]:
            raise Refused(
                f"has no column {missing[0]!r}, unlike files that `gh teacher download` writes"
            )
        rows = [map(str.strip, row.cells) for row in table.rows if row.cells]
        return [dict(zip(table.columns, cells, strict=True)) for cells in rows]
    except (UsageError, ValueError):
        raise Refused(
            "is not a CSV file in UTF-8 with the same number of cells in each line"
        ) from None


PLATFORMS: Sequence[NamedUploads | ListedFolders] = (
    ListedFolders(
        "Gradescope export", METADATA, _gradescope_folders, read_metadata, _not_on_gradescope
    ),
    NamedUploads("Moodle download", _MOODLE_NAMES, True, _on_moodle, _moodle_submission),
    NamedUploads("Canvas download", _CANVAS_NAMES, False, _on_canvas, _canvas_submission),
    ListedFolders("Classroom 50 clones", SCORES, _clones, read_scores, on_github),
)
"""All supported platforms, in the order in which they are tried."""


def recognise(folder: TreeEntry, problems: Problems) -> Layout | None:
    """Return the submissions in a platform's download, or None if no platform matches.

    The folder itself or its only subfolder may be the download.

    Args:
        folder: the folder, or an opened archive.
        problems: the problems of the course.
    """
    for download in _possible_downloads(folder):
        for platform in PLATFORMS:
            if layout := platform.look(download, problems):
                return layout
    return None


def _possible_downloads(folder: TreeEntry) -> Iterator[TreeEntry]:
    """Yield the folder, then its only subfolder if there is one that can be read.

    A `scores.csv` next to the subfolder is added to the subfolder's entries. A `scores.csv` in the
    subfolder takes precedence.
    """
    children = folder.children()
    yield virtual_folder(folder.name, children)
    inside = [child for child in children if not child.is_plain_file]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # an unreadable folder may be a student's
            beside = [child for child in children if child.name == SCORES]
            yield virtual_folder(inside[0].name, [*inside[0].children(), *beside])
