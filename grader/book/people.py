"""Whom a name means: by identity, by the name of the submission, or by the real name."""

from __future__ import annotations

import difflib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from grader.result import SubmissionResult
from grader.text import quoted


class People:
    """The submissions of a class by what an instructor may call them."""

    def __init__(self, results: Iterable[SubmissionResult]) -> None:
        self._by_identity: dict[str, SubmissionResult] = {}
        self._by_name: defaultdict[str, dict[str, SubmissionResult]] = defaultdict(dict)
        for result in results:
            if result.identity:
                self._by_identity[result.identity] = result
            for name in {result.submission, result.full_name} - {""}:
                self._by_name[_folded(name)][result.submission] = result

    def meant(self, name: str) -> list[SubmissionResult]:
        """Return who is meant: one, or nobody, or several whose names are alike.

        Args:
            name: an identity, a submission's name or a real name. Only a platform's id means one
                person whatever others are called.
        """
        found = dict(self._by_name.get(_folded(name), {}))
        if name in self._by_identity:
            one = self._by_identity[name]
            if ":" in name:  # a platform's own id, and nobody is called so
                return [one]
            found[one.submission] = one
        return list(found.values())

    def _names(self) -> list[str]:
        return [*self._by_identity, *self._by_name]

    def why_nobody(self, name: str) -> str:
        """Return why a name does not mean exactly one of the class; empty if it does."""
        found = self.meant(name)
        if len(found) == 1:
            return ""
        if not found:
            return f"nobody in these results is called {quoted(name)}{nearly(name, self._names())}"
        known = " and ".join(sorted(result.identity or result.submission for result in found))
        return f"{quoted(name)} may be {known}; write which"


def nearly(name: str, known: Iterable[str]) -> str:
    """Return a question, with a comma before it, about what a name may mean; empty if nothing."""
    near = difflib.get_close_matches(name, [*known], n=1, cutoff=0.7)
    return f", did you mean {quoted(near[0])}" if near else ""


def _folded(name: str) -> str:
    """Return a name in the one of its spellings in Unicode by which names are compared."""
    return " ".join(unicodedata.normalize("NFC", name).split())
