"""What was handed in, as it was read: one row for each student or group."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from grader.errors import UsageError


@dataclass(frozen=True)
class StudentFile:
    """One problem's file, as read: its bytes, or why there are none.

    Attributes:
        source: the file's bytes; None when it couldn't be read.
        reason: why there is no source; for the student and the instructor.
        bad: whether the file is there but can't be used, rather than missing.
        late: whether the platform says that it came late.
        handed_in: when it came, in ISO 8601; empty where no platform said it.
    """

    source: bytes | None
    reason: str = ""
    bad: bool = False
    late: bool = False
    handed_in: str = ""

    @property
    def is_there(self) -> bool:
        """Whether anything was handed in, be it of use or not."""
        return self.source is not None or self.bad

    @property
    def sha256(self) -> str:
        """The hash of what was read; empty when nothing was."""
        return "" if self.source is None else hashlib.sha256(self.source).hexdigest()


@dataclass
class Submission:
    """One student's work.

    Attributes:
        name: the name of its files among the results; safe, and nobody else's.
        files: by problem id.
        notes: sentences about what was found, for example a folder whose name was nearly right.
        members: whose work it is, as a learning platform knows them; empty outside of one.
        late: whether the platform says that it came late.
        unused: the names of files that were handed in and could not be mapped to a problem.
        identity: who it is, the same in every run; the name where nothing else is given.
        full_name: the student's name, as the platform or the folder says it.
        handed_in_as: what the folder or the archive is called.
        is_untold: whether nothing tells which problem a Python file in it is for.
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
    is_untold: bool = False

    def __post_init__(self) -> None:
        """Let the name be the identity where that is not given."""
        self.identity = self.identity or self.name

    @property
    def shown_name(self) -> str:
        """What people read."""
        return self.full_name or self.name

    @property
    def is_read(self) -> bool:
        """Whether a file was read for any problem."""
        return any(file.source is not None for file in self.files.values())

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
        is_whole: whether a class was given, of two submissions or more, and not a part of it.
        without_problem: the hint that there are files whose problem isn't told; empty where there
            are none.
    """

    submissions: list[Submission] = field(default_factory=list)
    recognised: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    is_whole: bool = False
    without_problem: str = ""

    def require_work(self) -> None:
        """Make sure that there is something to grade in a class.

        Otherwise `--problem` was forgotten, or the class is arranged in a way that is not
        understood, and everybody would get 0 points.

        Raises:
            UsageError: no file of two submissions or more was found, or most have only files that
                tell no problem.
        """
        read = sum(each.is_read for each in self.submissions)
        untold = sum(each.is_untold and not each.is_read for each in self.submissions)
        if self.without_problem and untold > read:
            raise UsageError(f"Nothing was graded. {self.without_problem}")
        if len(self.submissions) > 1 and not read:
            first = self.submissions[0]
            reason = next((file.reason for file in first.files.values()), "")
            raise UsageError(
                f"Nothing was graded: in none of {len(self.submissions)} submissions a file was "
                f"found that can be graded. {first.shown_name}: {reason}"
            )
