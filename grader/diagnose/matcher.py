"""Match a student's wrong answers with the wrong answers of known mistakes.

Each function or class is matched separately, since a class may not call the function that it
usually calls. The result is the smallest set of mistakes that explains some answers:

- An answer that no mistake in the set changes must be right.
- An answer that one mistake changes must be the answer of this mistake.
- An answer that several mistakes change may have any value.
- Each mistake must reproduce an answer that no other mistake in the set changes.

If several sets are possible, the set with the largest share wins. The share is the number of
answers that the set reproduces, divided by the number of answers that are wrong or that the set
changes. The matcher explains, in this order:

1. the numbers of all ordinary questions, with a share of at least `_LEAST_SHARE`;
2. the numbers of one part of a class, with a share of at least `_LEAST_SHARE_OF_A_PART`;
3. all answers to ordinary questions, including exceptions;
4. the remaining answers to edge questions, except in parts with an unknown mistake.

Exceptions and NaN are not numbers. In steps 3 and 4, the student's code must give all wrong answers
of a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from grader.diagnose.answers import Answer, alike, same
from grader.diagnose.fingerprints import Fingerprints, KnownMistake
from grader.diagnose.kept_answer import EDGE
from grader.diagnose.probe import Answers, owner

FORBIDDEN = "ForbiddenCall"
"""The exception of code that calls a forbidden function."""

_MOST_MISTAKES = 3
"""The maximum number of mistakes in a set."""

_LEAST_SHARE = 0.1
"""The minimum share of a set that explains all numbers. A single number may match by chance."""

_LEAST_SHARE_OF_A_PART = 0.3
"""The minimum share of a set that explains only one part of a class."""

ProbeKey = tuple[str, str]
"""A part and a question. The text of an edge question begins with `EDGE`."""

ProbeKeys = frozenset[ProbeKey]
_Given = Mapping[ProbeKey, Answer]


@dataclass(frozen=True, eq=False)
class Match:
    """A mistake, compared with the answers about one function or class.

    Attributes:
        mistake: the mistake.
        changed: the questions that the mistake answers wrongly.
        agreeing: the questions for which the mistake reproduces the student's wrong answer.
        support: the questions that select the mistake, a subset of `agreeing`. In the first steps
            they are ordinary questions with numbers as answers.
        opposed: the questions that exclude the mistake, unless another mistake changes them.
    """

    mistake: KnownMistake
    changed: ProbeKeys
    agreeing: ProbeKeys
    support: ProbeKeys
    opposed: ProbeKeys


_Set = tuple[Match, ...]


@dataclass(frozen=True)
class Explanation:
    """Mistakes that cannot be distinguished by the answers about a function or class.

    Attributes:
        matches: the mistakes.
        is_whole: whether all wrong answers to ordinary questions are explained.
    """

    matches: tuple[Match, ...]
    is_whole: bool = True

    @property
    def parts(self) -> list[str]:
        """The parts in which the mistakes reproduce an answer, in the order of the probe."""
        agreeing = {part for part, _ in self.matches[0].agreeing}
        return [part for part in self.matches[0].mistake.deviations if part in agreeing]


def explanations(
    name: str, known: Fingerprints, answers: Mapping[str, Answers]
) -> list[Explanation]:
    """Return the mistakes that explain the wrong answers about a function or class.

    Args:
        name: the function or class.
        known: the answers of the reference and of the known mistakes.
        answers: the student's answers.
    """
    right = _flat(known.reference, name)
    given = {q: answer for q, answer in _flat(answers, name).items() if q in right}
    wrong = frozenset(q for q in given if not same(given[q], right[q], dtype=is_edge(q)))
    ordinary = _ordinary(wrong)
    matches = [
        match
        for mistake in known.mistakes
        if (match := _match(mistake, _flat(mistake.deviations, name), right, given, wrong)).agreeing
    ]
    possible = [match for match in matches if match.opposed <= wrong]
    found = (
        _smallest(possible, ordinary, wrong, _LEAST_SHARE)
        or _of_parts(possible, ordinary, wrong)
        or _smallest(_exact(matches, ordinary, given), ordinary, wrong)
    )
    unknown = set() if found else {part for part, _ in ordinary}
    explained = ordinary.union(*(each.matches[0].agreeing for each in found))
    left = frozenset(
        q for q in wrong - explained if q[0] not in unknown and not (unknown and given[q].stops)
    )
    order = [*right]
    found.sort(key=lambda each: min(map(order.index, each.matches[0].agreeing)))
    at_edges = [match for match in matches if not _ordinary(match.changed)]
    return found + _smallest(_exact(at_edges, left, given), left, left)


def _flat(answers: Mapping[str, Answers], name: str) -> dict[ProbeKey, Answer]:
    """Return the answers about a function or class, by part and question."""
    return {
        (part, question): answer
        for part, given in answers.items()
        if owner(part) == name
        for question, answer in (
            *given.main.items(),
            *((EDGE + q, a) for q, a in given.edges.items()),
        )
    }


def is_edge(question: ProbeKey) -> bool:
    """Return whether a question is an edge question."""
    return question[1].startswith(EDGE)


def _ordinary(questions: Iterable[ProbeKey]) -> ProbeKeys:
    return frozenset(question for question in questions if not is_edge(question))


def _match(
    mistake: KnownMistake, own: _Given, right: _Given, given: _Given, wrong: ProbeKeys
) -> Match:
    """Compare the wrong answers of a mistake with the answers of the student.

    Args:
        mistake: the mistake.
        own: the wrong answers of the mistake.
        right: the answers of the reference.
        given: the answers of the student.
        wrong: the questions that the student's code answers wrongly.
    """
    agreeing = frozenset(q for q in own.keys() & wrong if _agree(q, own[q], given[q]))
    numbers = frozenset(q for q in _ordinary(agreeing) if _is_number(given[q]))
    opposed = frozenset(
        q
        for q in _ordinary(own.keys() | wrong)
        if q in given and _differ(own.get(q, right[q]), given[q])
    )
    return Match(mistake, frozenset(own), agreeing, numbers, opposed)


def _agree(question: ProbeKey, one: Answer, other: Answer) -> bool:
    """Return whether two wrong answers may come from the same mistake."""
    if is_edge(question) and FORBIDDEN not in (one.instead, other.instead):
        return alike(one, other)
    return same(one, other, dtype=False)


def _differ(one: Answer, other: Answer) -> bool:
    """Return whether two answers contradict each other.

    They do if both are numbers and differ, or if only one answer is a forbidden call. Any other
    exception may result from a different version of the same mistake.
    """
    if FORBIDDEN in (one.instead, other.instead):
        return one.instead != other.instead
    return one.is_value and other.is_value and not same(one, other, dtype=False)


def _is_number(answer: Answer) -> bool:
    """Return whether an answer has numbers. A forbidden call counts as a number."""
    return answer.instead == FORBIDDEN or (answer.is_value and not answer.is_lost)


def _of_parts(matches: list[Match], ordinary: ProbeKeys, wrong: ProbeKeys) -> list[Explanation]:
    """Return the mistakes that explain all numbers of one part, without regard to other parts."""
    return [
        replace(each, is_whole=False)
        for part in sorted({part for part, _ in ordinary})
        for each in _smallest(
            matches, frozenset(q for q in ordinary if q[0] == part), wrong, _LEAST_SHARE_OF_A_PART
        )
    ]


def _exact(matches: Iterable[Match], open: ProbeKeys, given: _Given) -> list[Match]:
    """Return the mistakes for which the student's code gives all wrong answers.

    All open questions select these mistakes. The result is empty if the code returns no number, as
    such code fails for a different reason.
    """
    return [
        replace(match, support=match.agreeing & open, opposed=open - match.changed)
        for match in matches
        if match.changed == match.agreeing
        and any(_is_number(given[q]) for q in match.changed | _ordinary(given))
    ]


def _smallest(
    matches: Iterable[Match], open: ProbeKeys, wrong: ProbeKeys, least_share: float = 0
) -> list[Explanation]:
    """Return the mistakes of the smallest set that explains the open answers.

    Args:
        matches: the mistakes to choose from.
        open: the questions with the answers to explain.
        wrong: all questions with a wrong answer, for the share.
        least_share: the minimum share of the set.
    """
    matches = [match for match in matches if match.support & open]
    for size in range(1, _MOST_MISTAKES + 1):
        shares = {
            chosen: share
            for chosen in combinations(matches, size)
            if _explains(chosen, open) and (share := _share(chosen, wrong)) >= least_share
        }
        if shares:
            best = max(shares.values())
            return _alternatives([c for c, share in shares.items() if share == best], open)
    return []


def _explains(chosen: _Set, open: ProbeKeys) -> bool:
    """Return whether a set explains the open answers and needs each of its mistakes."""
    for match in chosen:
        others = frozenset[ProbeKey]().union(*(m.changed for m in chosen if m is not match))
        if match.support & open <= others or not match.opposed & open <= others:
            return False
    return True


def _share(chosen: _Set, wrong: ProbeKeys) -> float:
    """Return the part of wrong or changed answers that a set reproduces."""
    agreeing = frozenset[ProbeKey]().union(*(match.agreeing for match in chosen))
    return len(agreeing & wrong) / len(wrong.union(*(match.changed for match in chosen)))


def _alternatives(sets: Sequence[_Set], open: ProbeKeys) -> list[Explanation]:
    """Return the mistakes of equally likely sets; group mistakes with the same answers.

    The result is empty if the sets reproduce different answers.
    """
    groups: dict[ProbeKeys, dict[Match, None]] = {}
    for match in (match for chosen in sets for match in chosen):
        groups.setdefault(match.support & open, {})[match] = None
    found = [Explanation((*group,)) for group in groups.values()]
    return found if len(found) == len(sets[0]) else []
