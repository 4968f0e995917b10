"""Represent submissions before and after reading: one for each student or group."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from grader.errors import UsageError
from grader.intake.tree import TreeEntry, gathered


@dataclass(frozen=True)
class StudentFile:
    """The file of one problem: its bytes, or the reason why there are none.

    Attributes:
        source: the bytes; None if the file could not be read.
        reason: why there is no source; for the student and the instructor.
        bad: whether the file exists but cannot be used; False if it is missing.
        late: whether the platform reports it as late.
        handed_in: the time of submission in ISO 8601; empty if no platform reports it.
    """

    source: bytes | None
    reason: str = ""
    bad: bool = False
    late: bool = False
    handed_in: str = ""

    @property
    def is_there(self) -> bool:
        """Whether a file was submitted, usable or not."""
        return self.source is not None or self.bad

    @property
    def sha256(self) -> str:
        """The hash of the source; empty if there is none."""
        return "" if self.source is None else hashlib.sha256(self.source).hexdigest()


@dataclass
class Submission:
    """The submission of one student or group.

    Attributes:
        name: the name of its result files; safe and unique.
        files: by problem id.
        notes: sentences about the files, for example a folder with a misspelt name.
        members: the ids of its students on the learning platform; empty without a platform.
        late: whether the platform reports it as late.
        unused: the names of submitted files that belong to no problem.
        identity: the student's id, the same in every run; the name if there is no other id.
        full_name: the student's name according to the platform or the folder.
        handed_in_as: the name of the submitted folder or archive.
        has_unknown_file: whether the problem of a Python file in it is unknown.
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
        """Use the name as the identity if there is no other."""
        self.identity = self.identity or self.name

    @property
    def shown_name(self) -> str:
        """The name in reports."""
        return self.full_name or self.name

    @property
    def is_read(self) -> bool:
        """Whether a file was read for any problem."""
        return any(file.source is not None for file in self.files.values())

    def only(self, ids: Iterable[str]) -> Submission:
        """Return the same submission with some of its problems."""
        return replace(self, files={id: self.files[id] for id in ids})


@dataclass(frozen=True)
class UnreadSubmission:
    """The submission of one student or group before its files are read.

    Attributes:
        identity: the student's id, the same in every download: the platform and its id, or else
            the full name of the folder or archive.
        name: the student's name according to the platform or the folder.
        folder: the submitted folder or archive.
        members: the id of each person in the platform's gradebook.
        late: whether the platform reports it as late.
        time: the time of submission as the platform writes it; empty if it does not.
        notes: sentences about how the files were found.
        unused: the names of submitted entries that cannot be graded, such as a text typed online.
    """

    identity: str
    name: str
    folder: TreeEntry = gathered("", ())
    members: tuple[str, ...] = ()
    late: bool = False
    time: str = ""
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass
class Layout:
    """The unread submissions at a path.

    Attributes:
        title: the kind of download, such as `Canvas download`; empty for any other folder.
        submissions: one for each student or group.
        unmatched: sentences about entries that match no student.
        notes: sentences about the whole.
    """

    title: str
    submissions: list[UnreadSubmission]
    unmatched: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Intake:
    """The submissions at the path that the instructor gave.

    Attributes:
        submissions: in the order in which they were found.
        recognised: a line about the download of a learning platform.
        unmatched: sentences about entries that belong to no student, or to more than one.
        without_problem: a hint about files of unknown problems; empty if there are none.
    """

    submissions: list[Submission]
    recognised: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    without_problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is a class of two submissions or more."""
        return len(self.submissions) > 1

    def require_work(self) -> None:
        """Require a file to grade in a class.

        Without one, `--problem` was forgotten, or the layout of the class is unknown, and all
        students would get 0 points.

        Raises:
            UsageError: none of two or more submissions has a file, or most have only files of
                unknown problems.
        """
        read = sum(each.is_read for each in self.submissions)
        unknown = sum(each.has_unknown_file and not each.is_read for each in self.submissions)
        if self.without_problem and unknown > read:
            raise UsageError(f"Nothing was graded. {self.without_problem}")
        if self.is_whole and not read:
            first = self.submissions[0]
            reason = next((file.reason for file in first.files.values()), "")
            raise UsageError(
                f"Nothing was graded: in none of {len(self.submissions)} submissions a file was "
                f"found that can be graded. {first.shown_name}: {reason}"
            )
