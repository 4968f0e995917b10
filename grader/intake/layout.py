"""List the submissions at a path before they are read: one for each student or group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from grader.intake.identity import folder_identity
from grader.intake.problem_names import did_you_mean
from grader.intake.tree import Kind, TreeEntry, gathered, without_suffix
from grader.text import quoted


@dataclass(frozen=True)
class Work:
    """The unread submission of one student or group.

    Attributes:
        identity: the student's id, the same in every download: the platform and its id, or else
            the full name of the folder or archive.
        name: the student's name according to the platform or the folder.
        folder: the submitted folder or archive.
        members: the id of each person in the platform's gradebook.
        late: whether the platform reports it as late.
        handed_in: the time of submission in ISO 8601; empty if the platform does not report it.
        notes: sentences about how the files were found.
        unused: the names of submitted entries that cannot be graded, such as a text typed online.
        parts: the names of its entries in the download, if there are more than its folder.
    """

    identity: str
    name: str
    folder: TreeEntry
    members: tuple[str, ...] = ()
    late: bool = False
    handed_in: str = ""
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


@dataclass
class Layout:
    """The submissions at a path.

    Attributes:
        title: the kind of download, such as `Canvas download`; empty for any other folder.
        works: one for each student or group.
        unmatched: sentences about entries that match no student.
        notes: sentences about the whole.
    """

    title: str
    works: list[Work]
    unmatched: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def with_others(self, others: Iterable[TreeEntry]) -> Layout:
        """Add entries that match no student. All but plain files get a row of their name."""
        names = [work.name for work in self.works]
        for entry in others:
            if entry.is_plain_file:
                self.unmatched.append(unmatched_file(entry.name, names))
            else:
                near = did_you_mean(entry.name, names)
                self.works.append(plain_work(entry, f"Its name fits no student.{near}"))
        return self


def plain_work(entry: TreeEntry, *notes: str, is_archive: bool = False) -> Work:
    """Return a submission that is named after its entry, because no platform names the student.

    Args:
        entry: a folder or an archive.
        notes: sentences about it.
        is_archive: whether the folder is an opened archive.
    """
    name = entry.name
    if is_archive or entry.kind is not Kind.FOLDER:
        name = without_suffix(name) or name
    return Work(folder_identity(name), name, entry, notes=notes)


def handed_in(name: str, entries: Sequence[TreeEntry]) -> TreeEntry:
    """Return the only entry if it is an archive, or else a folder of all entries."""
    if len(entries) == 1 and entries[0].is_archive:
        return entries[0]
    count = Counter(entry.name for entry in entries)
    twice = [name for name, n in count.items() if n > 1]
    fault = (
        f"holds {quoted(twice[0])} more than once; which one counts can't be known" if twice else ""
    )
    return gathered(name, entries, fault)


def typed_online(kind: str) -> str:
    """Return a sentence about a submission without a file; `kind` is the platform's word."""
    what = {"text": "A text typed online", "link": "A link", "onlinetext": "A text typed online"}
    return f"{what.get(kind, f'What Moodle calls {kind}')} was handed in; it is not graded."


def unmatched_file(name: str, known: Iterable[str]) -> str:
    """Return a sentence about a file that matches no student."""
    return f"{quoted(name)} was not used; it fits no student.{did_you_mean(name, known)}"
