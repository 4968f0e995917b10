"""Determine the problem that the name of a file, folder or archive indicates."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.course import SUBMISSION_FILE, Problem
from grader.intake.tree import without_suffix

ALL_PROBLEMS = "problems"
"""The name of the course's folder that contains the folders of problems."""

_STEM = SUBMISSION_FILE.partition(".")[0]
_REUPLOAD = re.compile(r"-[1-9]\d*(?=\.[^.]+\Z)")
_COPY = re.compile(r"(?:-\d+|[ _]?\(\d+\)|[ _]?-?[ _]?copy(?:[ _]\d+)?)\Z", re.IGNORECASE)
_NEAR = 0.8


@dataclass(frozen=True)
class Problems:
    """The problems of the course, and the problems to search for.

    Attributes:
        known: the ids of all problems.
        only: the id of the only problem to search for; empty for all problems.
        by_name: maps the name of a file or folder in `names.csv` to the id of its problem.
        stubs: maps the id of each problem with a known stub to the problem.
    """

    known: tuple[str, ...]
    only: str = ""
    by_name: Mapping[str, str] = field(default_factory=dict)
    stubs: Mapping[str, Problem] = field(default_factory=dict)

    @property
    def requested(self) -> tuple[str, ...]:
        """The ids of the problems to search for."""
        return (self.only,) if self.only else self.known

    @property
    def hint(self) -> str:
        """Advice to the user if the problem of a file is unknown."""
        first = self.known[0]
        return (
            f"If the submission is for only one problem, name the problem, for example with "
            f"--problem {first}"
        )

    @property
    def others(self) -> tuple[str, ...]:
        """The ids of the problems that are not searched for."""
        return tuple(id for id in self.known if id not in self.requested)

    def of_file(self, name: str) -> str:
        """Return the problem that the name of a Python file indicates, or ""."""
        return self.by_name.get(_composed(name)) or problem_from_name(name, self.known)

    def of_folder(self, name: str) -> str:
        """Return the problem that the name of a folder or an archive indicates, or ""."""
        stem = without_suffix(before_reupload(name))
        return self.by_name.get(_composed(name)) or problem_from_name(f"{stem}.py", self.known)

    def similar_to_file(self, name: str) -> str:
        """Return the problem whose id is similar to the name of a file, or ""."""
        stem = without_suffix(name).removesuffix(".py")
        copied = problem_from_name(f"{_COPY.sub('', stem)}.py", self.known)
        return copied or nearest_folder(stem, self.known) or nearest_problem(stem, self.known)

    def similar_to_folder(self, name: str) -> str:
        """Return the problem whose id is similar to the name of a folder or an archive, or ""."""
        return nearest_folder(without_suffix(before_reupload(name)), self.known)

    def is_unwritten(self, id: str, source: bytes) -> bool:
        """Return whether a problem's file is empty or the unchanged stub."""
        is_stub = id in self.stubs and self.stubs[id].is_stub(source)
        return is_stub or not source.strip(b"\xef\xbb\xbf \t\r\n")


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def problem_from_name(name: str, known: Iterable[str]) -> str:
    """Return the id of the problem that the name of a Python file indicates.

    Return "" if the name indicates no problem, or more than one.

    Valid names are `01-name.py`, `01.py` and `name.py`, each with or without the word `problem`
    before or after it. Words may be separated by `-`, `_`, spaces or dots. Upper and lower case
    are ignored. A number must have two digits, because platforms and browsers rename a second
    `problem.py` to `problem-1.py`.

    Args:
        name: the name of the file.
        known: the ids of the problems.
    """
    if not is_python(name):
        return ""
    words = _words(name[:-3])
    matches = [id for id in known if words and words in {id, id[:2], id[3:]}]
    return matches[0] if len(matches) == 1 else ""


def _words(stem: str) -> str:
    """Return the words of a name, joined by `-`, without `problem` at either end."""
    words = "-".join(re.findall("[a-z0-9]+", stem.lower()))
    return words.removeprefix(_STEM).removesuffix(_STEM).strip("-")


def is_python(name: str) -> bool:
    """Return whether a file name has the suffix of Python code."""
    return name.lower().endswith(".py")


def is_bare(name: str) -> bool:
    """Return whether a file is called `problem.py`, a name that fits all problems."""
    return name.lower() == SUBMISSION_FILE


def before_reupload(name: str) -> str:
    """Return the name of a file before a platform renamed it, for example to `problem-1.py`."""
    return _REUPLOAD.sub("", name)


# Misspelled names


def nearest_folder(name: str, ids: Sequence[str]) -> str:
    """Return the problem whose id is similar to a folder's name, or ""."""
    return next(iter(difflib.get_close_matches(name.lower(), ids, n=1, cutoff=_NEAR)), "")


def nearest_problem(stem: str, ids: Sequence[str]) -> str:
    """Return the problem whose id is similar to a file's name.

    Return "" if no problem or several problems match.

    A number in the name counts only if it is the only number, because several numbers may be a
    date.

    Args:
        stem: the name of the file without its suffix.
        ids: the ids of the possible problems.
    """
    words = _words(stem)
    numbers = [word for word in words.split("-") if word.isdecimal()]
    holds = [id for id in ids if id[3:] in words or numbers == [id[:2]]]
    near = difflib.get_close_matches(words, [*ids, *(id[3:] for id in ids)], n=1, cutoff=0.7)
    matches = holds or [id for id in ids if near and near[0] in (id, id[3:])]
    return matches[0] if len(matches) == 1 else ""


def is_nearly_bare(name: str) -> bool:
    """Return whether a Python file's name is a misspelling or a copy of `problem.py`."""
    stem = name[:-3].strip().lower()
    is_near = _STEM in stem or difflib.get_close_matches(stem, [_STEM], cutoff=_NEAR)
    return is_python(name) and bool(is_near)
