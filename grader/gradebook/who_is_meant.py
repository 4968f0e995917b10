"""Whom a name means: by identity, by the name of the submission, or by the real name.

What the roster says of somebody is a name too. Capitals make no difference where nobody is called
exactly so.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from grader.gradebook.roster import Matched
from grader.result import SubmissionResult
from grader.text import quoted

_ByName = defaultdict[str, dict[str, SubmissionResult]]


class People:
    """The submissions of a class by what an instructor may call them.

    Args:
        results: of the whole class.
        matched: the class beside its roster.
    """

    def __init__(self, results: Iterable[SubmissionResult], matched: Matched | None = None) -> None:
        matched = matched or Matched()
        self._by_identity: dict[str, SubmissionResult] = {}
        self._by_name: _ByName = defaultdict(dict)
        self._by_small: _ByName = defaultdict(dict)
        awaited = [*matched.absent, *matched.unclear]
        self._awaited = {_small(name) for entry in awaited for name in entry.names}
        for result in results:
            if result.identity:
                self._by_identity[result.identity] = result
            own = {result.submission, result.full_name} - {""}
            entries = matched.of.get(result.who, ())
            listed = {name for entry in entries for name in entry.names}
            for name in own:
                self._by_name[_folded(name)][result.submission] = result
            for name in own | listed:
                self._by_small[_small(name)][result.submission] = result

    def meant(self, name: str) -> list[SubmissionResult]:
        """Return who is meant: one, or nobody, or several whose names are alike.

        Args:
            name: an identity, a submission's name or a real name. Only a platform's id means one
                person whatever others are called.
        """
        exact = self._by_name.get(_folded(name), {})
        found = dict(exact or self._by_small.get(_small(name), {}))
        if name in self._by_identity:
            one = self._by_identity[name]
            if ":" in name:  # a platform's own id, and nobody is called so
                return [one]
            found[one.submission] = one
        return list(found.values())

    def is_awaited(self, name: str) -> bool:
        """Tell whether a name is that of somebody on the roster who has handed in nothing."""
        return not self.meant(name) and _small(name) in self._awaited

    def _names(self) -> list[str]:
        return [*self._by_identity, *self._by_name]

    def why_nobody(self, name: str) -> str:
        """Return why a name does not mean exactly one of the class; empty if it does."""
        found = self.meant(name)
        if len(found) == 1:
            return ""
        if self.is_awaited(name):
            return f"{quoted(name)} is on the roster and has handed in nothing"
        if not found:
            return f"nobody in these results is called {quoted(name)}{nearly(name, self._names())}"
        known = " and ".join(sorted(result.who for result in found))
        return f"{quoted(name)} may be {known}; write which"


def nearly(name: str, known: Iterable[str]) -> str:
    """Return a question, with a comma before it, about what a name may mean; empty if nothing."""
    near = difflib.get_close_matches(name, [*known], n=1, cutoff=0.7)
    return f", did you mean {quoted(near[0])}" if near else ""


def _folded(name: str) -> str:
    """Return a name in the one of its spellings in Unicode by which names are compared."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def _small(name: str) -> str:
    return _folded(name).casefold()
