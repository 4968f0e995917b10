"""Match a student's wrong answers with the wrong answers of known mistakes.

Each function or class is matched separately, because a student's class may not call the functions
that the reference calls. The matcher searches for the smallest set of mistakes that explains the
student's answers. A set explains answers under these conditions:

- If no mistake in the set changes an answer, the student's answer is right.
- If one mistake changes an answer, the student's answer equals the answer of this mistake.
- If several mistakes change an answer, the student's answer may have any value.
- Each mistake reproduces an answer that no other mistake in the set changes.

If several sets of the same size are possible, the set with the largest share is selected. The share
is the number of answers that the set reproduces, divided by the number of answers that are wrong or
that the set changes. The matcher tries to explain the answers in four steps:

1. the numbers of all ordinary questions, with a share of at least `_LEAST_SHARE`;
2. the numbers of one part of a class, with a share of at least `_LEAST_SHARE_OF_A_PART`;
3. all answers to ordinary questions, including exceptions;
4. the remaining answers to edge questions, except in parts with an unknown mistake.

Steps 2 and 3 are skipped if an earlier step finds a set. Exceptions and NaN are not numbers.
In steps 3 and 4, the student's code must reproduce all wrong answers of a mistake.
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
"""The name of the exception that a call of a forbidden function raises."""

_MOST_MISTAKES = 3
"""The maximum number of mistakes in a set."""

_LEAST_SHARE = 0.1
"""The minimum share of a set that explains all numbers. A single number may match by chance."""

_LEAST_SHARE_OF_A_PART = 0.3
"""The minimum share of a set that explains only one part of a class."""

ProbeKey = tuple[str, str]
"""The name of a part and the name of a question. An edge question's name begins with `EDGE`."""

ProbeKeys = frozenset[ProbeKey]
_AnswersByKey = Mapping[ProbeKey, Answer]


@dataclass(frozen=True, eq=False)
class Match:
    """The comparison of a mistake with a student's answers about one function or class.

    Attributes:
        mistake: the mistake.
        changed: the questions that the mistake answers wrongly.
        agreeing: the questions for which the mistake reproduces the student's wrong answer.
        support: the questions in `agreeing` that count in favor of the mistake. In the first steps,
            these are ordinary questions whose answers are numbers.
        opposed: the questions that exclude the mistake, unless another mistake in the set changes
            their answers.
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
    flat = {q: answer for q, answer in _flat(answers, name).items() if q in right}
    wrong = frozenset(q for q in flat if not same(flat[q], right[q], dtype=is_edge(q)))
    ordinary = _ordinary(wrong)
    matches = [
        match
        for mistake in known.mistakes
        if (match := _match(mistake, _flat(mistake.deviations, name), right, flat, wrong)).agreeing
    ]
    possible = [match for match in matches if match.opposed <= wrong]
    result = (
        _smallest(possible, ordinary, wrong, _LEAST_SHARE)
        or _of_parts(possible, ordinary, wrong)
        or _smallest(_exact(matches, ordinary, flat), ordinary, wrong)
    )
    unknown = set() if result else {part for part, _ in ordinary}
    explained = ordinary.union(*(each.matches[0].agreeing for each in result))
    left = frozenset(
        q for q in wrong - explained if q[0] not in unknown and not (unknown and flat[q].stops)
    )
    order = [*right]
    result.sort(key=lambda each: min(map(order.index, each.matches[0].agreeing)))
    at_edges = [match for match in matches if not _ordinary(match.changed)]
    return result + _smallest(_exact(at_edges, left, flat), left, left)


def _flat(answers: Mapping[str, Answers], name: str) -> dict[ProbeKey, Answer]:
    """Return the answers about a function or class, by part and question."""
    return {
        (part, question): answer
        for part, of_part in answers.items()
        if owner(part) == name
        for question, answer in (
            *of_part.main.items(),
            *((EDGE + q, a) for q, a in of_part.edges.items()),
        )
    }


def is_edge(question: ProbeKey) -> bool:
    """Return whether a question is an edge question."""
    return question[1].startswith(EDGE)


def _ordinary(questions: Iterable[ProbeKey]) -> ProbeKeys:
    return frozenset(question for question in questions if not is_edge(question))


def _match(
    mistake: KnownMistake,
    of_mistake: _AnswersByKey,
    right: _AnswersByKey,
    answers: _AnswersByKey,
    wrong: ProbeKeys,
) -> Match:
    """Compare the wrong answers of a mistake with the answers of the student.

    Args:
        mistake: the mistake.
        of_mistake: the wrong answers of the mistake.
        right: the answers of the reference.
        answers: the answers of the student.
        wrong: the questions that the student's code answers wrongly.
    """
    agreeing = frozenset(
        q for q in of_mistake.keys() & wrong if _agree(q, of_mistake[q], answers[q])
    )
    numbers = frozenset(q for q in _ordinary(agreeing) if _is_number(answers[q]))
    opposed = frozenset(
        q
        for q in _ordinary(of_mistake.keys() | wrong)
        if q in answers and _contradict(of_mistake.get(q, right[q]), answers[q])
    )
    return Match(mistake, frozenset(of_mistake), agreeing, numbers, opposed)


def _agree(question: ProbeKey, one: Answer, other: Answer) -> bool:
    """Return whether two wrong answers can come from the same mistake."""
    if is_edge(question) and FORBIDDEN not in (one.instead, other.instead):
        return alike(one, other)
    return same(one, other, dtype=False)


def _contradict(one: Answer, other: Answer) -> bool:
    """Return whether two answers contradict each other.

    Two different numbers contradict each other, and a forbidden call contradicts any other answer.
    An exception does not contradict a number, because the same mistake can raise an exception in
    one file and return a wrong number in another.
    """
    if FORBIDDEN in (one.instead, other.instead):
        return one.instead != other.instead
    return one.is_value and other.is_value and not same(one, other, dtype=False)


def _is_number(answer: Answer) -> bool:
    """Return whether an answer contains numbers. A forbidden call counts as a number."""
    return answer.instead == FORBIDDEN or (answer.is_value and not answer.is_lost)


def _of_parts(matches: list[Match], ordinary: ProbeKeys, wrong: ProbeKeys) -> list[Explanation]:
    """Return the mistakes that explain all numbers of a part. Consider each part separately."""
    return [
        replace(each, is_whole=False)
        for part in sorted({part for part, _ in ordinary})
        for each in _smallest(
            matches, frozenset(q for q in ordinary if q[0] == part), wrong, _LEAST_SHARE_OF_A_PART
        )
    ]


def _exact(matches: Iterable[Match], targets: ProbeKeys, answers: _AnswersByKey) -> list[Match]:
    """Return the mistakes whose wrong answers are all reproduced by the student's code.

    In the result, any answer to one of the `targets` can support a mistake, even an exception.

    If the student's code returns a number neither for an ordinary question nor for a question that
    the mistake answers wrongly, omit the mistake. Such code fails for a different reason.
    """
    return [
        replace(match, support=match.agreeing & targets, opposed=targets - match.changed)
        for match in matches
        if match.changed == match.agreeing
        and any(_is_number(answers[q]) for q in match.changed | _ordinary(answers))
    ]


def _smallest(
    matches: Iterable[Match], targets: ProbeKeys, wrong: ProbeKeys, least_share: float = 0
) -> list[Explanation]:
    """Return the mistakes of the smallest set that explains the answers to the `targets`.

    Args:
        matches: the mistakes from which sets are formed.
        targets: the questions whose answers a set must explain.
        wrong: all questions with a wrong answer, from which the share is computed.
        least_share: the minimum share of the set.
    """
    matches = [match for match in matches if match.support & targets]
    for size in range(1, _MOST_MISTAKES + 1):
        shares = {
            chosen: share
            for chosen in combinations(matches, size)
            if _explains(chosen, targets) and (share := _share(chosen, wrong)) >= least_share
        }
        if shares:
            best = max(shares.values())
            return _alternatives([c for c, share in shares.items() if share == best], targets)
    return []


def _explains(chosen: _Set, targets: ProbeKeys) -> bool:
    """Return whether a set explains the answers to the `targets` and needs all its mistakes."""
    for match in chosen:
        others = frozenset[ProbeKey]().union(*(m.changed for m in chosen if m is not match))
        if match.support & targets <= others or not match.opposed & targets <= others:
            return False
    return True


def _share(chosen: _Set, wrong: ProbeKeys) -> float:
    """Return the share of the wrong or changed answers that a set reproduces."""
    agreeing = frozenset[ProbeKey]().union(*(match.agreeing for match in chosen))
    return len(agreeing & wrong) / len(wrong.union(*(match.changed for match in chosen)))


def _alternatives(sets: Sequence[_Set], targets: ProbeKeys) -> list[Explanation]:
    """Return an explanation for each group of mistakes that reproduce the same answers.

    If the sets reproduce different answers, return an empty list.

    Args:
        sets: equally likely sets of mistakes.
        targets: the questions whose answers the sets explain.
    """
    groups: dict[ProbeKeys, dict[Match, None]] = {}
    for match in (match for chosen in sets for match in chosen):
        groups.setdefault(match.support & targets, {})[match] = None
    result = [Explanation((*group,)) for group in groups.values()]
    return result if len(result) == len(sets[0]) else []
