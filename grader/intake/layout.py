"""Who handed in what, before anything is read: one work for each student or group."""

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
    """What one student, or one group, handed in.

    Attributes:
        identity: who it is, the same in every download: a platform's own id, with the platform
            before it, else the full name of the folder or archive.
        name: the student's name, as the platform or the folder says it.
        folder: what was handed in: a folder or an archive.
        members: one for each person, as the platform's gradebook knows them.
        late: whether the platform says that it came late.
        handed_in: when it came, in ISO 8601; empty where the platform doesn't say it.
        notes: sentences about how the files were found.
        unused: the names of what was handed in and can't be graded, such as a text typed online.
        parts: what stands in the download for it, where that is more than its folder.
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
    """What there is at a path, seen through.

    Attributes:
        title: what it is, such as `Canvas download`; empty for any folder.
        works: one for each student or group.
        unmatched: sentences about what fits no student.
        notes: sentences about the whole.
    """

    title: str
    works: list[Work]
    unmatched: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def with_others(self, others: Iterable[TreeEntry]) -> Layout:
        """Add what fits no student. Only plain files are left out, so that nobody vanishes."""
        names = [work.name for work in self.works]
        for entry in others:
            if entry.is_plain_file:
                self.unmatched.append(unmatched_file(entry.name, names))
            else:
                near = did_you_mean(entry.name, names)
                self.works.append(plain_work(entry, f"Its name fits no student.{near}"))
        return self


def plain_work(entry: TreeEntry, *notes: str, is_archive: bool = False) -> Work:
    """Return what goes by its own name, because no platform says whose it is.

    Args:
        entry: a folder or an archive.
        notes: sentences about it.
        is_archive: whether it is an archive though it is open already.
    """
    name = entry.name
    if is_archive or entry.kind is not Kind.FOLDER:
        name = without_suffix(name) or name
    return Work(folder_identity(name), name, entry, notes=notes)


def handed_in(name: str, entries: Sequence[TreeEntry]) -> TreeEntry:
    """Return what to look through: the archive, if that is all there is, or a folder of it all."""
    if len(entries) == 1 and entries[0].is_archive:
        return entries[0]
    count = Counter(entry.name for entry in entries)
    twice = [name for name, n in count.items() if n > 1]
    fault = (
        f"holds {quoted(twice[0])} more than once; which one counts can't be known" if twice else ""
    )
    return gathered(name, entries, fault)


def typed_online(kind: str) -> str:
    """Return a sentence about what was handed in without a file; Canvas says text or link."""
    what = {"text": "A text typed online", "link": "A link", "onlinetext": "A text typed online"}
    return f"{what.get(kind, f'What Moodle calls {kind}')} was handed in; it is not graded."


def unmatched_file(name: str, known: Iterable[str]) -> str:
    """Return a sentence about a file that is no student's."""
    return f"{quoted(name)} was not used; it fits no student.{did_you_mean(name, known)}"
