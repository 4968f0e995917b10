"""Name the mistakes that explain a student's wrong answers, and write the sentences about them.

`grader.diagnose.matcher` compares the answers. A mistake must agree with the tests, too: it is
excluded if the test that catches it passed, or if its sentence begins with a function that is
right. If several mistakes cannot be distinguished, at most two of them are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from grader.diagnose.answers import Answer
from grader.diagnose.evidence import Certainty, Evidence, Source
from grader.diagnose.fingerprints import Fingerprints, KnownMistake, Text, deviations
from grader.diagnose.kept_answer import EDGE
from grader.diagnose.matcher import FORBIDDEN, Explanation, explanations, is_edge
from grader.diagnose.probe import Answers, owner
from grader.result import ALTERNATIVE, WrongAnswers
from grader.text import listed

_NOT_WRITTEN = {"!NotImplementedError", "!AttributeError"}
"""Answers of code that is not written yet. Such answers are not a mistake."""

_MOST_ALIKE = 2
"""The maximum number of reported mistakes that cannot be distinguished."""


def diagnose(
    known: Fingerprints, answers: Mapping[str, Answers], passed: Collection[str] = ()
) -> list[Evidence]:
    """Return the evidence that explains wrong answers, function by function.

    Args:
        known: the answers of the reference and of the known mistakes.
        answers: the answers of the student's code.
        passed: ids of the tests that the code passed.
    """
    wrong = deviations(answers, known.reference)
    known = _consistent(known, {owner(part) for part in wrong}, passed)
    found = [
        explanation
        for name in dict.fromkeys(owner(part) for part in known.reference if part in wrong)
        for explanation in explanations(name, known, answers)
    ]
    return _evidence(found, wrong, known)


def _consistent(known: Fingerprints, wrong: set[str], passed: Collection[str]) -> Fingerprints:
    """Return the fingerprints, without mistakes that contradict a test or a right function.

    Args:
        known: all fingerprints.
        wrong: the functions and classes with wrong answers.
        passed: ids of the tests that passed. The test that catches a mistake may cover a function
            that the student's class does not use. So a passed test excludes a mistake only if all
            functions and classes that the mistake changes are wrong.
    """
    right = {owner(part) for part in known.reference} - wrong

    def is_consistent(mistake: KnownMistake) -> bool:
        about = known.texts[mistake.name].when.partition(" ")[0]
        owners = {owner(part) for part in mistake.deviations}
        return about not in right and not (mistake.caught_by in passed and owners <= wrong)

    return replace(known, mistakes=tuple(filter(is_consistent, known.mistakes)))


def _evidence(
    found: list[Explanation], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[Evidence]:
    """Return the evidence about all functions. Each mistake appears once, with all its parts."""
    counts = Counter(match.mistake.name for each in found for match in each.matches)
    named: dict[tuple[str, ...], list[tuple[Explanation, list[KnownMistake]]]] = {}
    for each in found:
        mistakes = _likeliest([match.mistake for match in each.matches], counts, wrong)
        texts = tuple(dict.fromkeys(_when(mistake, known) for mistake in mistakes))
        if len(texts) <= _MOST_ALIKE:
            named.setdefault(texts, []).append((each, mistakes))
    owners = {owner(part) for same in named.values() for each, _ in same for part in each.parts}
    unnamed_parts = [
        p for p, given in wrong.items() if owner(p) not in owners and _is_written(given)
    ]
    return [_evidence_of(same, unnamed_parts, known) for same in named.values()]


def _when(mistake: KnownMistake, known: Fingerprints) -> str:
    return known.texts[mistake.name].when.rstrip(".")


def _likeliest(
    mistakes: list[KnownMistake], counts: Counter[str], wrong: Mapping[str, Answers]
) -> list[KnownMistake]:
    """Select the likeliest of several mistakes that give the same answers in a function.

    Prefer mistakes that explain the most functions. Among these mistakes, prefer mistakes that
    change the fewest right parts. Count a class without wrong parts once.
    """
    wrong_owners = {owner(part) for part in wrong}

    def merit(mistake: KnownMistake) -> tuple[int, int]:
        right = mistake.deviations.keys() - wrong.keys()
        claimed = {part if owner(part) in wrong_owners else owner(part) for part in right}
        return counts[mistake.name], -len(claimed)

    best = max(map(merit, mistakes))
    return [mistake for mistake in mistakes if merit(mistake) == best]


def _is_written(given: Answers) -> bool:
    """Return whether any wrong answer comes from code that is written."""
    answers = (*given.main.values(), *given.edges.values())
    return any(f"!{answer.instead}" not in _NOT_WRITTEN for answer in answers)


def _evidence_of(
    found: Sequence[tuple[Explanation, list[KnownMistake]]],
    unnamed_parts: list[str],
    known: Fingerprints,
) -> Evidence:
    """Return the evidence about a mistake that was found in some functions.

    Args:
        found: explanations that name the mistake, and the mistakes that can't be distinguished.
        unnamed_parts: wrong parts of functions and classes without a named mistake.
        known: the fingerprints.
    """
    parts = list(dict.fromkeys(part for each, _ in found for part in each.parts))
    mistakes = {mistake.name: mistake for _, alike in found for mistake in alike}
    texts = {_when(mistake, known): known.texts[mistake.name] for mistake in reversed(found[0][1])}
    is_callers = any(_calls(parts[0], part, known) for part in unnamed_parts)
    sentence = _sentence([*reversed(texts.values())], parts, known, is_callers=is_callers)
    return Evidence(
        sentence if any(each.is_whole for each, _ in found) else _one_of_several(sentence),
        Certainty.ALL,
        Source.CATALOGUE,
        tuple(parts),
        tuple(mistakes),
        tuple(
            dict.fromkeys(mistake.caught_by for mistake in mistakes.values() if mistake.caught_by)
        ),
        any(not is_edge(q) for each, _ in found for match in each.matches for q in match.agreeing),
    )


def _calls(part: str, other: str, known: Fingerprints) -> bool:
    """Return whether a part seems to call an earlier part, as some mistake changes both parts."""
    order = [*known.reference]
    return order.index(other) < order.index(part) and any(
        part in mistake.deviations and other in mistake.deviations for mistake in known.mistakes
    )


def _sentence(
    texts: Sequence[Text], parts: list[str], known: Fingerprints, *, is_callers: bool = False
) -> str:
    """Return the sentence for the student.

    The sentence must be true for wrong numbers, missing names and exceptions. It names the first
    function once, and contains each nudge once. A mistake in several functions may be only in the
    first function, if the other functions call this function. If `is_callers`, a mistake in a
    function may be in another wrong function that the first function calls.
    """
    first, *others = dict.fromkeys(map(owner, parts))
    text, *further = texts
    seen = f" (seen in {listed(others)}, too)" if others else ""
    if text.when.startswith(f"{first} "):
        callers = ", or what it calls," if is_callers else ""
        text = replace(text, when=f"{first}{callers}{seen}{text.when.removeprefix(first)}")
        where = "It"
    elif len({*map(owner, known.reference)}) == 1 and not others and not is_callers:
        where = "It"
    else:
        where = f"In {first}{', or in what it calls' if is_callers else ''}{seen}, it"
    looks = [each.look for each in texts]
    sentences = [
        f"{each.when}. {'' if each.look in looks[place + 1 :] else each.look}".strip()
        for place, each in enumerate([text, *further])
    ]
    return f"{where} looks as if {ALTERNATIVE.join(sentences)}"


def _one_of_several(sentence: str) -> str:
    return f"One of at least two mistakes: {sentence[0].lower()}{sentence[1:]}"


def unnamed(
    known: Fingerprints, answers: Mapping[str, Answers], found: Iterable[Evidence]
) -> dict[str, WrongAnswers]:
    """Return the wrong answers of the parts in which no known mistake was found.

    Omit parts that are not written yet, and parts with a forbidden call, which has a separate
    message. Omit parts that only raise exceptions if another part of the same class has a named
    mistake.

    Args:
        known: the fingerprints, for the answers of the reference.
        answers: the answers of the student's code.
        found: the result of `diagnose`.
    """
    named = {part for each in found for part in each.parts}
    wrong = deviations(answers, known.reference).items()
    texts = {
        part: {q: a.write() for q, a in given.main.items()}
        | {EDGE + q: a.write() for q, a in given.edges.items()}
        for part, given in wrong
    }
    return {
        part: given
        for part, given in without_named(texts, named).items()
        if {*given.values()} - _NOT_WRITTEN and f"!{FORBIDDEN}" not in given.values()
    }


def without_named(unknown: Mapping[str, WrongAnswers], named: set[str]) -> dict[str, WrongAnswers]:
    """Return the wrong answers without the parts in `named`.

    Also omit a part of the same class if all its wrong answers are exceptions.
    """
    owners = {owner(part) for part in named}
    return {
        part: given
        for part, given in unknown.items()
        if part not in named and not (owner(part) in owners and all(map(_stops, given.values())))
    }


def kept_answers(given: WrongAnswers) -> Answers:
    """Return the answers from texts that `unnamed` returned."""
    main = {q: Answer.read(text) for q, text in given.items() if not q.startswith(EDGE)}
    edges = {q: Answer.read(text) for q, text in given.items() if q.startswith(EDGE)}
    return Answers(main, {q.removeprefix(EDGE): answer for q, answer in edges.items()})


def _stops(text: str) -> bool:
    return Answer.read(text).stops
