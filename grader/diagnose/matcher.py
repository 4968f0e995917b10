"""Match a student's wrong answers with those of known mistakes.

Each function or class is matched separately, since a class may not call the function that it
usually calls. Ordinary questions are compared by their numbers, questions at the edges by the kind
of failure. The share of a mistake is the part of the answers that it reproduces, of all that are
wrong or that it would change. In this order:

1. One mistake: it reproduces a number, and no number contradicts it. The largest share wins.
2. Two mistakes: each reproduces a number that the other one does not change, and all other numbers
   are right or changed by both. The pair that reproduces the most numbers wins.
3. One of at least two: a mistake reproduces all numbers of one part of a class, contradicts no
   right answer, and has a share of at least `_SMALLEST_SHARE`.
4. Code without wrong numbers must stop at the same questions with the same exceptions.
5. Mistakes that change only answers at the edges explain what is left there. All their answers must
   agree, and they must explain most of it. Of several, the one that changes the fewest wins.

NaN, exceptions and forbidden calls are no numbers, so alone they select no mistake in steps 1 to 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from grader.diagnose.answers import Answer, alike, same
from grader.diagnose.fingerprints import Fingerprints, KnownMistake
from grader.diagnose.kept_answer import EDGE
from grader.diagnose.probe import Answers, owner

FORBIDDEN = "ForbiddenCall"
"""The exception of code that calls a forbidden function."""

_SMALLEST_SHARE = 0.3
"""The share of a mistake that explains one part of a class only."""

_MOST_OF_EDGES = 0.6
"""The part of the open answers at the edges that a mistake must explain."""

ProbeKey = tuple[str, str]
"""A part and a question; the questions at the edges begin with `EDGE`."""

ProbeKeys = frozenset[ProbeKey]


@dataclass(frozen=True)
class _Function:
    """The answers about one function or class.

    Attributes:
        right: the answers of the reference.
        given: the student's answers to these questions.
        wrong: the questions with a wrong answer.
    """

    right: Mapping[ProbeKey, Answer]
    given: Mapping[ProbeKey, Answer]
    wrong: ProbeKeys

    @property
    def ordinary(self) -> ProbeKeys:
        """The ordinary questions with a wrong answer."""
        return _ordinary(self.wrong)


@dataclass(frozen=True, eq=False)
class Match:
    """A mistake, compared with the answers about one function or class.

    Attributes:
        mistake: the mistake.
        answers: its wrong answers.
        agreeing: the wrong answers that the mistake reproduces.
        numbers: the ordinary ones of these that are numbers.
        opposed: the ordinary questions with another number than the mistake gives.
        share: the part of the wrong or changed answers that the mistake reproduces.
    """

    mistake: KnownMistake
    answers: Mapping[ProbeKey, Answer]
    agreeing: ProbeKeys
    numbers: ProbeKeys
    opposed: ProbeKeys
    share: float

    @property
    def changed(self) -> ProbeKeys:
        """The questions that the mistake answers wrongly."""
        return frozenset(self.answers)


@dataclass(frozen=True)
class Explanation:
    """Mistakes that cannot be distinguished by the answers about a function or class.

    Attributes:
        matches: the mistakes.
        is_whole: whether they explain all wrong answers to ordinary questions.
    """

    matches: tuple[Match, ...]
    is_whole: bool = True

    @property
    def parts(self) -> list[str]:
        """The parts in which the mistakes reproduce an answer, in the order of the probe."""
        agreeing = self.matches[0].agreeing
        return list(
            dict.fromkeys(part for part, q in self.matches[0].answers if (part, q) in agreeing)
        )


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
    function = _Function(right, given, wrong)
    matches = [*_matches(name, known.mistakes, function)]
    found: list[Explanation] = []
    if function.ordinary:
        found = (
            _best(match for match in matches if _is_certain(match, given) and not match.opposed)
            or _together(matches, wrong, 2)
            or _together(matches, wrong, 3)
            or _one_of_several(matches, function)
            or _best(match for match in matches if _stops_alike(match, function))
        )
    # Wrong answers at the edges of a part may be due to an unknown mistake in it.
    unknown = set() if found else {part for part, _ in function.ordinary}
    explained = function.ordinary.union(*(each.matches[0].agreeing for each in found))
    open_edges = frozenset(q for q in wrong - explained if q[0] not in unknown)
    if unknown:  # exceptions may be due to it, too
        matches = [m for m in matches if any(given[q].is_value for q in m.agreeing)]
    order = [*right]
    found.sort(key=lambda each: min(map(order.index, each.matches[0].agreeing)))
    return [*found, *_at_edges(matches, open_edges)]


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
    """Return whether a question is one at the edges."""
    return question[1].startswith(EDGE)


def _ordinary(questions: Iterable[ProbeKey]) -> ProbeKeys:
    return frozenset(question for question in questions if not is_edge(question))


def _matches(name: str, mistakes: Iterable[KnownMistake], function: _Function) -> Iterator[Match]:
    """Yield the mistakes that reproduce any wrong answer."""
    for mistake in mistakes:
        if not (own := _flat(mistake.deviations, name)):
            continue
        given, changed, wrong = function.given, frozenset(own), function.wrong
        agreeing = frozenset(q for q in changed & wrong if _agree(q, own[q], given[q]))
        forbidden = {q for q in _ordinary(changed) if own[q].instead == FORBIDDEN}
        if not agreeing or not forbidden <= agreeing:
            continue
        numbers = frozenset(
            q for q in _ordinary(agreeing) if given[q].is_value and not given[q].is_lost
        )
        opposed = frozenset(
            q
            for q in _ordinary(changed | wrong) & given.keys()
            if _differ(given[q], own.get(q, function.right[q]))
        )
        share = len(agreeing) / len(wrong | changed)
        yield Match(mistake, own, agreeing, numbers, opposed, share)


def _agree(question: ProbeKey, one: Answer, other: Answer) -> bool:
    """Return whether two wrong answers may come from the same mistake."""
    if FORBIDDEN in (one.instead, other.instead):
        return one.instead == other.instead
    if is_edge(question):
        return alike(one, other)
    return same(one, other, dtype=False) or bool(one.instead and other.instead)


def _differ(one: Answer, other: Answer) -> bool:
    """Return whether two answers are different numbers; an exception is another spelling."""
    return one.is_value and other.is_value and not same(one, other, dtype=False)


def _best(matches: Iterable[Match], *, is_whole: bool = True) -> list[Explanation]:
    """Return the matches with the largest share, as one explanation."""
    matches = [*matches]
    best = max((match.share for match in matches), default=0.0)
    found = tuple(match for match in matches if match.share == best)
    return [Explanation(found, is_whole)] if found else []


def _together(matches: Iterable[Match], wrong: ProbeKeys, count: int) -> list[Explanation]:
    """Return the mistakes that explain all wrong numbers together, if only they do."""
    possible = [match for match in matches if match.numbers and match.opposed <= wrong]
    found = [
        (explained, changed, chosen)
        for chosen in combinations(possible, count)
        if (explained := _explained(chosen))
        if (changed := len(frozenset[ProbeKey]().union(*(match.changed for match in chosen))))
    ]
    best = max(((explained, -changed) for explained, changed, _ in found), default=(0, 0))
    groups: dict[ProbeKeys, dict[str, Match]] = {}
    for explained, changed, chosen in found:
        if (explained, -changed) == best:
            for match in chosen:
                groups.setdefault(match.numbers, {})[match.mistake.name] = match
    return [Explanation((*group.values(),)) for group in groups.values() if len(groups) == count]


def _explained(chosen: Collection[Match]) -> int:
    """Return how many numbers each of some mistakes reproduces alone; 0 if they do not fit.

    Each must reproduce one that no other one changes. A number that differs from that of a mistake
    must be changed by another one, too.
    """
    total = 0
    for match in chosen:
        others = [other.changed for other in chosen if other is not match]
        changed = frozenset[ProbeKey]().union(*others)
        own = match.numbers - changed
        if not own or not match.opposed <= changed:
            return 0
        total += len(own)
    return total


def _one_of_several(matches: Collection[Match], function: _Function) -> list[Explanation]:
    """Return the mistakes that explain all wrong numbers of a part, whatever else is wrong."""
    found: list[Explanation] = []
    for part in dict.fromkeys(part for part, _ in function.right):
        own = frozenset(q for q in function.ordinary if q[0] == part)
        if _are_many_numbers(function.given[question] for question in own):
            found += _best(
                (
                    match
                    for match in matches
                    if own <= match.numbers
                    and match.opposed <= function.wrong
                    and match.share >= _SMALLEST_SHARE
                ),
                is_whole=False,
            )
    return [*dict.fromkeys(found)]


def _is_certain(match: Match, given: Mapping[ProbeKey, Answer]) -> bool:
    """Return whether the reproduced numbers of a mistake are no chance.

    Exceptions instead of its numbers must not outnumber them. A bool or a single number may match
    by chance, if most other answers are exceptions.
    """
    changed = _ordinary(match.changed) & given.keys()
    stopped = [q for q in changed if match.answers[q].is_value and given[q].stops]
    return len(stopped) <= len(match.numbers) > 0 and (
        match.share >= _SMALLEST_SHARE or _are_many_numbers(given[q] for q in match.numbers)
    )


def _are_many_numbers(answers: Iterable[Answer]) -> bool:
    """Return whether answers have several numbers. A bool or a single number matches by chance."""
    answers = [answer for answer in answers if answer.dtype != "bool"]
    return len(answers) > 1 or any(answer.shape != "scalar" for answer in answers)


def _stops_alike(match: Match, function: _Function) -> bool:
    """Return whether a mistake has the same exceptions, and an answer that is no exception."""
    ordinary = _ordinary(match.changed | function.wrong)
    if not match.changed | ordinary <= match.agreeing:
        return False
    given, own = function.given, match.answers
    return all(given[q].instead == own[q].instead for q in ordinary) and (
        len(ordinary) < len(_ordinary(function.right))
        or any(own[q].is_value and not own[q].is_lost for q in match.changed)
        or any(own[q].instead == FORBIDDEN for q in ordinary)
    )


def _at_edges(matches: Iterable[Match], open_edges: ProbeKeys) -> Iterator[Explanation]:
    """Yield up to two explanations of the open answers at the edges."""
    matches = [m for m in matches if not _ordinary(m.changed) and m.changed == m.agreeing]
    for _ in range(2):
        most = max((len(match.agreeing & open_edges) for match in matches), default=0)
        if not most or most < _MOST_OF_EDGES * len(open_edges):
            return
        likely = [match for match in matches if len(match.agreeing & open_edges) == most]
        fewest = min(len(match.changed) for match in likely)
        best = tuple(match for match in likely if len(match.changed) == fewest)
        yield Explanation(best)
        open_edges -= best[0].agreeing
