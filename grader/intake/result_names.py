"""What a submission is called in results: a name that is safe for a file and nobody else's."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from itertools import chain, count
from pathlib import Path

_UNSAFE = re.compile(r"[^\w.@+ -]", re.ASCII)
_LONGEST = 100


def result_name(handed_in_as: str, taken: Container[str]) -> str:
    """Return the name of a submission's result files. It is chosen here and nowhere else.

    Args:
        handed_in_as: the student's name, or that of a folder or an archive; any text.
        taken: the names that others have, in small letters, as some file systems see them.
    """
    safe = readable_name(handed_in_as)
    candidates = chain([safe], (f"{safe}-{n}" for n in count(2)))
    return next(name for name in candidates if name.lower() not in taken)


def readable_name(handed_in_as: str) -> str:
    """Return a name without what a file's name may not hold, nor accents. Others may have it."""
    letters = unicodedata.normalize("NFKD", handed_in_as)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _UNSAFE.sub("_", bare)[:_LONGEST].strip(" .") or "submission"


class ResultNames:
    """The names that were given so far, each with the path that holds the submission."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[str, Path]] = {}
        self._told: list[str] = []

    def take(self, handed_in_as: str, path: Path) -> str:
        """Return a name for a submission at `path` that no other one has."""
        name = result_name(handed_in_as, self._taken)
        wanted = readable_name(handed_in_as)
        first, where = self._taken.get(wanted.lower(), (name, path))
        if where != path:
            both = f"in {str(where)!a} and in {str(path)!a}"
            self._told.append(f"{wanted} is {both}: graded as {first} and {name}.")
        self._taken[name.lower()] = (name, path)
        return name

    def told(self) -> list[str]:
        """Return sentences, each once, about names that were wanted at more than one path."""
        told, self._told = self._told, []
        return told
