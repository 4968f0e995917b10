"""Name the mistakes that explain a student's wrong answers, and write the sentences about them.

`grader.diagnose.matcher` compares the answers. A mistake is excluded if the test that catches it
passed, or if its sentence begins with the name of a function that is right. If more than two
mistakes cannot be distinguished, none of them is named.
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
"""The answers of code that the student has not written yet. They do not indicate a mistake."""

_MOST_ALIKE = 2
"""The maximum number of sentences about mistakes that cannot be distinguished."""


def diagnose(
    known: Fingerprints, answers: Mapping[str, Answers], passed: Collection[str] = ()
) -> list[Evidence]:
    """Return the known mistakes that explain wrong answers, in the order of the functions.

    Args:
        known: the answers of the reference and of the known mistakes.
        answers: the answers of the student's code.
        passed: ids of the tests that the code passed.
    """
    wrong = deviations(answers, known.reference)
    known = _consistent(known, {owner(part) for part in wrong}, passed)
    explained = [
        explanation
        for name in dict.fromkeys(owner(part) for part in known.reference if part in wrong)
        for explanation in explanations(name, known, answers)
    ]
    return _evidence(explained, wrong, known)


def _consistent(known: Fingerprints, wrong: set[str], passed: Collection[str]) -> Fingerprints:
    """Return the fingerprints without the mistakes that a passed test or a right function excludes.

    Args:
        known: all fingerprints.
        wrong: the functions and classes with wrong answers.
        passed: the ids of the tests that passed. A passed test excludes a mistake only if all
            functions and classes that the mistake changes are wrong. Otherwise, the test may check
            a right function that a wrong class should call but does not call.
    """
    right = {owner(part) for part in known.reference} - wrong

    def is_consistent(mistake: KnownMistake) -> bool:
        first_word = known.texts[mistake.name].when.partition(" ")[0]
        owners = {owner(part) for part in mistake.deviations}
        return first_word not in right and not (mistake.caught_by in passed and owners <= wrong)

    return replace(known, mistakes=tuple(filter(is_consistent, known.mistakes)))


def _evidence(
    explained: list[Explanation], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[Evidence]:
    """Return the evidence about all functions and classes. Each mistake is reported once."""
    counts = Counter(match.mistake.name for each in explained for match in each.matches)
    named: dict[tuple[str, ...], list[tuple[Explanation, list[KnownMistake]]]] = {}
    for each in explained:
        mistakes = _likeliest([match.mistake for match in each.matches], counts, wrong)
        texts = tuple(dict.fromkeys(_when(mistake, known) for mistake in mistakes))
        if len(texts) <= _MOST_ALIKE:
            named.setdefault(texts, []).append((each, mistakes))
    owners = {owner(part) for same in named.values() for each, _ in same for part in each.parts}
    unnamed_parts = [
        p for p, of_part in wrong.items() if owner(p) not in owners and _is_written(of_part)
    ]
    return [_evidence_of(same, unnamed_parts, known) for same in named.values()]


def _when(mistake: KnownMistake, known: Fingerprints) -> str:
    return known.texts[mistake.name].when.rstrip(".")


def _likeliest(
    mistakes: list[KnownMistake], counts: Counter[str], wrong: Mapping[str, Answers]
) -> list[KnownMistake]:
    """Return the likeliest of several mistakes that give the same wrong answers.

    Prefer the mistakes that explain the most functions and classes. Among these mistakes, prefer
    the mistakes that change the fewest right parts. Count all parts of a right class as one part.
    """
    wrong_owners = {owner(part) for part in wrong}

    def merit(mistake: KnownMistake) -> tuple[int, int]:
        right = mistake.deviations.keys() - wrong.keys()
        claimed = {part if owner(part) in wrong_owners else owner(part) for part in right}
        return counts[mistake.name], -len(claimed)

    best = max(map(merit, mistakes))
    return [mistake for mistake in mistakes if merit(mistake) == best]


def _is_written(answers: Answers) -> bool:
    """Return whether at least one of the wrong answers is from code that is already written."""
    values = (*answers.main.values(), *answers.edges.values())
    return any(f"!{answer.instead}" not in _NOT_WRITTEN for answer in values)


def _evidence_of(
    explained: Sequence[tuple[Explanation, list[KnownMistake]]],
    unnamed_parts: list[str],
    known: Fingerprints,
) -> Evidence:
    """Return the evidence about one mistake, or about mistakes that cannot be distinguished.

    Args:
        explained: (explanation, likeliest mistakes) pairs of the functions and classes with the
            mistake.
        unnamed_parts: the wrong parts of functions and classes without a named mistake.
        known: the fingerprints.
    """
    parts = list(dict.fromkeys(part for each, _ in explained for part in each.parts))
    mistakes = {mistake.name: mistake for _, alike in explained for mistake in alike}
    first_mistakes = explained[0][1]
    texts = {_when(each, known): known.texts[each.name] for each in reversed(first_mistakes)}
    is_callers = any(_calls(parts[0], part, known) for part in unnamed_parts)
    sentence = _sentence([*reversed(texts.values())], parts, known, is_callers=is_callers)
    return Evidence(
        sentence if any(each.is_whole for each, _ in explained) else _as_one_of_several(sentence),
        Certainty.ALL,
        Source.CATALOGUE,
        tuple(parts),
        tuple(mistakes),
        tuple(
            dict.fromkeys(mistake.caught_by for mistake in mistakes.values() if mistake.caught_by)
        ),
        any(
            not is_edge(q)
            for each, _ in explained
            for match in each.matches
            for q in match.agreeing
        ),
    )


def _calls(part: str, other: str, known: Fingerprints) -> bool:
    """Return whether `part` seems to call `other`, an earlier part that a mistake also changes."""
    order = [*known.reference]
    return order.index(other) < order.index(part) and any(
        part in mistake.deviations and other in mistake.deviations for mistake in known.mistakes
    )


def _sentence(
    texts: Sequence[Text], parts: list[str], known: Fingerprints, *, is_callers: bool = False
) -> str:
    """Return the sentence for the student, which contains each nudge once.

    Args:
        texts: the texts of the mistakes that cannot be distinguished.
        parts: the parts with the mistake. The sentence is about the function of the first part,
            because the other functions may be wrong only because they call this function.
        known: the fingerprints.
        is_callers: whether the mistake might be in a wrong function that the first function calls.
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
    nudges = [each.nudge for each in texts]
    sentences = [
        f"{each.when}. {'' if each.nudge in nudges[place + 1 :] else each.nudge}".strip()
        for place, each in enumerate([text, *further])
    ]
    return f"{where} looks as if {ALTERNATIVE.join(sentences)}"


def _as_one_of_several(sentence: str) -> str:
    return f"One of at least two mistakes: {sentence[0].lower()}{sentence[1:]}"


def unnamed(
    known: Fingerprints, answers: Mapping[str, Answers], diagnosed: Iterable[Evidence]
) -> dict[str, WrongAnswers]:
    """Return the wrong answers of the parts in which no known mistake was found, as texts.

    Omit parts that the student has not written yet, and parts that call a forbidden function, which
    is reported separately. If a mistake was found in a part of a class, omit the other parts of
    this class that only raise exceptions.

    Args:
        known: the fingerprints.
        answers: the answers of the student's code.
        diagnosed: the result of `diagnose`.
    """
    named = {part for each in diagnosed for part in each.parts}
    wrong = deviations(answers, known.reference).items()
    texts = {
        part: {q: a.write() for q, a in of_part.main.items()}
        | {EDGE + q: a.write() for q, a in of_part.edges.items()}
        for part, of_part in wrong
    }
    return {
        part: of_part
        for part, of_part in without_named(texts, named).items()
        if {*of_part.values()} - _NOT_WRITTEN and f"!{FORBIDDEN}" not in of_part.values()
    }


def without_named(unknown: Mapping[str, WrongAnswers], named: set[str]) -> dict[str, WrongAnswers]:
    """Return the wrong answers of the parts that are not in `named`.

    If a part of a class is in `named`, also omit the other parts of the class whose wrong answers
    are all exceptions.
    """
    owners = {owner(part) for part in named}
    return {
        part: texts
        for part, texts in unknown.items()
        if part not in named and not (owner(part) in owners and all(map(_stops, texts.values())))
    }


def kept_answers(texts: WrongAnswers) -> Answers:
    """Return one part's wrong answers, which `unnamed` returned as texts."""
    main = {q: Answer.read(text) for q, text in texts.items() if not q.startswith(EDGE)}
    edges = {q: Answer.read(text) for q, text in texts.items() if q.startswith(EDGE)}
    return Answers(main, {q.removeprefix(EDGE): answer for q, answer in edges.items()})


def _stops(text: str) -> bool:
    return Answer.read(text).stops
