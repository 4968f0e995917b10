"""Define the data of a submission before and after its files are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from grader.errors import UsageError
from grader.intake.tree import TreeEntry, virtual_folder


@dataclass(frozen=True)
class StudentFile:
    """The submitted file for one problem, or the reason why there is no such file.

    Attributes:
        source: the bytes; None if the file could not be read.
        reason: a sentence for students and instructors that explains why `source` is None.
        bad: whether the file exists but cannot be used; False if the file is missing.
        late: whether the platform reports the file as late.
        handed_in: the time of submission in ISO 8601; empty if no platform reports it.
    """

    source: bytes | None
    reason: str = ""
    bad: bool = False
    late: bool = False
    handed_in: str = ""

    @property
    def is_submitted(self) -> bool:
        """Whether a file was submitted, even if it cannot be used."""
        return self.source is not None or self.bad

    @property
    def sha256(self) -> str:
        """The SHA-256 hash of the source; empty if there is no source."""
        return "" if self.source is None else hashlib.sha256(self.source).hexdigest()


@dataclass
class Submission:
    """The submission of one student or group.

    Attributes:
        name: the unique name that is used for the result files. It has no unsafe characters.
        files: maps the id of each problem to its file.
        notes: sentences about the files, for example about a folder with a misspelt name.
        members: the ids of the students on the learning platform; empty without a platform.
        late: whether the platform reports the submission as late.
        unused: the names of submitted files that belong to no problem.
        identity: the student's id, which is the same in every run. If there is no id, it is `name`.
        full_name: the student's name according to the platform or the folder.
        handed_in_as: the name of the submitted folder or archive.
        has_unknown_file: whether the submission contains a Python file of an unknown problem.
    """

    name: str
    files: dict[str, StudentFile]
    notes: list[str] = field(default_factory=list)
    members: tuple[str, ...] = ()
    late: bool = False
    unused: tuple[str, ...] = ()
    identity: str = ""
    full_name: str = ""
    handed_in_as: str = ""
    has_unknown_file: bool = False

    def __post_init__(self) -> None:
        """Use the name as the identity if no identity is set."""
        self.identity = self.identity or self.name

    @property
    def shown_name(self) -> str:
        """The name of the student or group in reports."""
        return self.full_name or self.name

    @property
    def is_read(self) -> bool:
        """Whether the file of at least one problem was read."""
        return any(file.source is not None for file in self.files.values())

    def only(self, ids: Iterable[str]) -> Submission:
        """Return a copy of the submission that contains only the problems with these ids."""
        return replace(self, files={id: self.files[id] for id in ids})


@dataclass(frozen=True)
class UnreadSubmission:
    """The submission of one student or group before its files are read.

    Attributes:
        identity: the student's id, which is the same in every download. It consists of the platform
            and the id on the platform. Without a platform it is the name of the folder or archive.
        name: the student's name according to the platform or the folder.
        folder: the submitted folder or archive.
        members: the id of each student in the platform's gradebook.
        late: whether the platform reports the submission as late.
        time: the submission time in the platform's format; empty if it is unknown.
        notes: sentences about which files were chosen.
        unused: the names of submitted items that cannot be graded, such as a text typed online.
    """

    identity: str
    name: str
    folder: TreeEntry = virtual_folder("", ())
    members: tuple[str, ...] = ()
    late: bool = False
    time: str = ""
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass
class Layout:
    """The unread submissions at a path.

    Attributes:
        title: the kind of download, such as `Canvas download`. It is empty if the path contains no
            download of a learning platform.
        submissions: the submissions, one for each student or group.
        unmatched: sentences about entries that match no student.
        notes: sentences about the whole download.
    """

    title: str
    submissions: list[UnreadSubmission]
    unmatched: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Intake:
    """The submissions at the path that the instructor gave.

    Attributes:
        submissions: the submissions in the order in which they were found.
        recognised: a line about the download of a learning platform. The list is empty if the path
            contains no such download.
        unmatched: sentences about entries that belong to no student, or to more than one.
        without_problem: a hint if the problem of some files is unknown; otherwise empty.
    """

    submissions: list[Submission]
    recognised: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    without_problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the path contains a class, which means two or more submissions."""
        return len(self.submissions) > 1

    def require_work(self) -> None:
        """Check that a class has files to grade.

        All students of a class without files would get 0 points. The reason is usually that
        `--problem` was forgotten, or that the layout of the folders is unknown.

        Raises:
            UsageError: no submission of a class has a readable file, or the problem is unknown for
                the files of most submissions.
        """
        read = sum(each.is_read for each in self.submissions)
        unknown = sum(each.has_unknown_file and not each.is_read for each in self.submissions)
        if self.without_problem and unknown > read:
            raise UsageError(f"Nothing was graded. {self.without_problem}")
        if self.is_whole and not read:
            first = self.submissions[0]
            reason = next((file.reason for file in first.files.values()), "")
            raise UsageError(
                f"Nothing was graded: none of the {len(self.submissions)} submissions has a file "
                f"that can be graded. {first.shown_name}: {reason}"
            )
