"""Find a submission by a name, an identity, or a login or an e-mail address on the roster.

Upper and lower case are ignored, but an exact match has priority.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from grader.gradebook.roster import Known, Matched, RosterEntry, first_name_first, keys_of, squeezed
from grader.result import SubmissionResult, readable_names
from grader.text import quoted

Aliases = Mapping[str, Sequence[str]]
"""Maps the name of a submission to other names of its student."""

NO_ALIASES: Aliases = {}

_ByName = defaultdict[str, dict[str, SubmissionResult]]


class NotOne(Exception):  # noqa: N818  (a sentence for the instructor)
    """A name does not match exactly one submission.

    Attributes:
        instead: the closest name if nothing matches, or the identities of all matches.
        is_awaited: whether the name matches a student on the roster who has no submission.
    """

    def __init__(self, why: str, instead: Sequence[str] = (), *, is_awaited: bool = False) -> None:
        super().__init__(why)
        self.instead = instead
        self.is_awaited = is_awaited


class People:
    """Finds the submissions of a class by name.

    Args:
        results: the results of the whole class.
        matched: the roster entries of the class.
        also: maps the name of a submission to other names of its student.
    """

    def __init__(
        self,
        results: Sequence[SubmissionResult],
        matched: Matched,
        also: Aliases,
    ) -> None:
        self._by_identity: dict[str, SubmissionResult] = {}
        self._by_name: _ByName = defaultdict(dict)
        self._by_small: _ByName = defaultdict(dict)
        self._others: defaultdict[str, list[RosterEntry]] = defaultdict(list)
        """Maps names to students on the roster without a known submission."""
        for entry in [*matched.absent, *matched.unclear]:
            for name in {*map(_small, entry.names)}:
                self._others[name].append(entry)
        readable = readable_names(results)
        self._by_letters: defaultdict[str, list[SubmissionResult]] = defaultdict(list)
        """Maps full names without spaces and punctuation, as in some file names, to submissions."""
        for result in results:
            if result.identity:
                self._by_identity[result.identity] = result
            more = also.get(result.submission, ())
            if letters := squeezed(result.full_name):
                self._by_letters[letters].append(result)
            self._by_identity |= {name: result for name in more if ":" in name}
            for name in {*_names_of(result, matched), readable[result.submission], *more}:
                self._by_name[_folded(name)][result.submission] = result
                self._by_small[_small(name)][result.submission] = result

    def matches(self, name: str) -> list[SubmissionResult]:
        """Return the submissions that a name matches.

        Args:
            name: an identity, the name of a submission or a full name. An identity of a platform,
                such as `canvas:17`, matches only the student with this identity.
        """
        exact = self._by_name.get(_folded(name), {})
        meant = dict(exact or self._by_small.get(_small(name), {}))
        if name in self._by_identity:
            one = self._by_identity[name]
            if ":" in name:  # a platform's identity is unique
                return [one]
            meant[one.submission] = one
        return list(meant.values())

    def owners(self, name: str) -> list[str]:
        """Return the names of the submissions that match a name in a platform's file.

        If `name` also matches a student without a known submission, return an empty list. This
        does not apply to identities.
        """
        if name not in self._by_identity and self._others_called(name):
            return []
        owners = self.matches(name) or self._by_letters[squeezed(name)]
        return [result.submission for result in owners]

    def known_names(self) -> list[str]:
        """Return all names that match a submission, in lower case."""
        return [*self._by_small]

    def _others_called(self, name: str) -> list[RosterEntry]:
        return self._others.get(_small(name), [])

    def one(self, name: str) -> SubmissionResult:
        """Return the submission that a name matches.

        Raises:
            NotOne: the name does not match exactly one submission.
        """
        meant = self.matches(name)
        others = [] if name in self._by_identity else self._others_called(name)
        if len(meant) == 1 and not others:
            return meant[0]
        if not meant and len(others) == 1:
            why = f"{quoted(name)} is on the roster but has submitted nothing"
            raise NotOne(why, is_awaited=True)
        if not meant and not others:
            numbered = [id for id in self._by_identity if id.partition(":")[2] == name]
            near = numbered or closest(name, self._by_name)
            raise NotOne(f"no student in these results is called {quoted(name)}", near)
        who = sorted([*(result.who for result in meant), *(each.names[-1] for each in others)])
        raise NotOne(f"{quoted(name)} may refer to {' or '.join(who)}", who)


def author(result: SubmissionResult) -> Known:
    """Return the author of a submission."""
    return Known(result.who, result.full_name, result.members)


def _names_of(result: SubmissionResult, matched: Matched) -> set[str]:
    """Return all names of a student, or of the members of a group."""
    known = author(result)
    members = result.full_name.split(" + ") if known.is_group else []
    keys = [key if known.platform else result.who for key in keys_of(known)]
    # A user number of Canvas can equal another student's number at the university.
    if known.platform == "canvas":
        keys = [key for key in keys if not key.isdecimal()]
    names = {result.submission, result.full_name, *members, *keys}
    return {*names, *matched.names(result.who)} - {""}


def closest(name: str, known: Iterable[str], alike: float = 0.7) -> list[str]:
    """Return a list with the closest name, or an empty list if all similarities are too small.

    Args:
        name: the name to compare.
        known: the names to choose from.
        alike: the smallest similarity, from 0 to 1.
    """
    return difflib.get_close_matches(name, [*known], n=1, cutoff=alike)


def _folded(name: str) -> str:
    """Return a name in a normal form, with the first name first and single spaces."""
    return first_name_first(" ".join(unicodedata.normalize("NFC", name).split()))


def _small(name: str) -> str:
    return _folded(name).casefold()
