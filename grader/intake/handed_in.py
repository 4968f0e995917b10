"""What was handed in, as it was read: one row for each student or group."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from grader.errors import UsageError
from grader.intake.problem_names import before_reupload, is_bare


@dataclass(frozen=True)
class StudentFile:
    """One problem's file, as read: its bytes, or why there are none.

    Attributes:
        source: the file's bytes; None when it couldn't be read.
        reason: why there is no source; for the student and the instructor.
        bad: whether the file is there but can't be used, rather than missing.
        late: whether the platform says that it came late.
        handed_in: when it came, in ISO 8601; empty where no platform said it.
        nearly: whether it is missing or the stub, and another is there that may have been meant.
    """

    source: bytes | None
    reason: str = ""
    bad: bool = False
    late: bool = False
    handed_in: str = ""
    nearly: bool = False

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

    @property
    def has_bare_file(self) -> bool:
        """Whether there is a file that could be used if its problem were given."""
        return any(is_bare(before_reupload(name)) for name in self.unused)

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

    def require_a_problem(self) -> None:
        """Make sure that most submissions do not hold just a file that tells no problem.

        Otherwise `--problem` was forgotten, and most would get 0 points in every problem.

        Raises:
            UsageError: most have such files alone.
        """
        read = sum(each.is_read for each in self.submissions)
        bare = sum(each.has_bare_file and not each.is_read for each in self.submissions)
        if self.without_problem and bare > read:
            raise UsageError(f"Nothing was graded. {self.without_problem}")
