"""Which problem a name tells: of a single file, of a folder, of an archive. One rule for all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from grader.course import SUBMISSION_FILE, Problem
from grader.intake.archives.kinds import without_suffix
from grader.intake.did_you_mean import nearest_folder

_REUPLOAD = re.compile(r"-[1-9]\d*(?=\.[^.]+\Z)")


@dataclass(frozen=True)
class Problems:
    """The problems of the course, and which of them are looked for.

    Attributes:
        known: the ids of all.
        given: the only one that was handed in; empty when that isn't known.
        around: another problem that the folder or archive around is called after, if one is given.
        meant: what files and folders mean by `names.csv`, for their names the problems' ids.
        stubs: by their ids the problems whose stubs are known.
    """

    known: tuple[str, ...]
    given: str = ""
    around: str = ""
    meant: Mapping[str, str] = field(default_factory=dict)
    stubs: Mapping[str, Problem] = field(default_factory=dict)

    @cached_property
    def sought(self) -> tuple[str, ...]:
        """The problems that are looked for. What is others' is told and never taken."""
        return (self.given,) if self.given else self.known

    @cached_property
    def others(self) -> tuple[str, ...]:
        """The problems that are known and not looked for."""
        return tuple(id for id in self.known if id not in self.sought)

    @cached_property
    def bare(self) -> str:
        """Whose a `problem.py` is that stands in no problem's folder; empty if nobody can know."""
        return self.around or self.given

    @cached_property
    def takes_bare(self) -> bool:
        """Whether such a file is taken for the given problem's."""
        return bool(self.given) and not self.around

    def inside(self, name: str) -> Problems:
        """Return what holds in a folder or an archive: its name may be that of another problem."""
        if not self.given:
            return self
        stem = without_suffix(before_reupload(name))
        told = problem_from_name(f"{stem}.py", self.known) or nearest_folder(stem, self.known)
        return replace(self, around=told) if told and told != self.given else self

    def of_file(self, name: str) -> str:
        """Return the problem that the name of a single file tells here; empty if it tells none."""
        if meant := self.meant.get(unicodedata.normalize("NFC", name)):
            return meant
        return self.bare if is_bare(name) else problem_from_name(name, self.known)

    def is_stub(self, id: str, source: bytes | None) -> bool:
        """Tell whether a problem's file is the stub as it is handed out."""
        return id in self.stubs and self.stubs[id].is_stub(source)

    def of_folder(self, name: str) -> str:
        """Return the problem whose folder is called so, if it is one that is looked for."""
        id = self.meant.get(unicodedata.normalize("NFC", name), name)
        return id if id in self.sought else ""


def problem_from_name(name: str, known: Iterable[str]) -> str:
    """Return the problem that the name of a single file tells, if it tells just one.

    That is `01-name.py`, `01.py` or `name.py`, each with or without the word `problem` before
    or after it, with any of `-`, `_`, space and point between words, in any case. The number has
    both digits: `problem-1.py` is what platforms and browsers make of a second `problem.py`.

    Args:
        name: the file's.
        known: the ids of the problems.
    """
    said = words_of(name)
    fits = [id for id in known if said and said in {id, id[:2], id[3:]}]
    return fits[0] if len(fits) == 1 else ""


def words_of(name: str) -> str:
    """Return the words of a Python file's name with `-` between them, without `problem`."""
    stem, point, ending = name.lower().rpartition(".")
    if not point or ending != "py":
        return ""
    words = "-".join(re.findall("[a-z0-9]+", stem))
    word = SUBMISSION_FILE.partition(".")[0]
    return words.removeprefix(word).removesuffix(word).strip("-")


def is_bare(name: str) -> bool:
    """Tell whether a file is called `problem.py`, which tells no problem by itself."""
    return name.lower() == SUBMISSION_FILE


def before_reupload(name: str) -> str:
    """Return what a file was called before `problem-1.py` was made of a second `problem.py`."""
    return _REUPLOAD.sub("", name)
