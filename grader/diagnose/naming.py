"""Match a student's wrong answers with those of known mistakes, and name the mistakes that fit.

Each function and class is matched separately, since a student may write a module without the
function that it usually calls. The rules, in the order in which they apply:

- A name needs numbers. A mistake fits a part if none of the student's numbers contradicts its
  numbers and at least one wrong number is the same. Exceptions contradict no mistake: another way
  to write the same mistake may raise where this one continues. They support no mistake either,
  since many mistakes raise exceptions. There are two special cases. A mistake without any number
  fits if the code stops at the same questions only, with the same exceptions. A mistake that
  calls a forbidden function fits only code that does so at the same main questions.
- A class may have several parts. If one part contradicts a mistake, the mistake is not named for
  another part, unless it explains all wrong main answers there. Then the code has two mistakes. The
  sentence also mentions functions that the part calls, if they are wrong and have no named mistake.
- Questions at the edges explain wrong answers that the main questions leave open. A mistake must
  match in all its answers there, and must explain most of the open ones.
- Report at most two mistakes that cannot be distinguished. If there are more, report none.
- If only gradients are wrong and no mistake fits, report only that.
- A name must agree with the tests. A mistake is not named if the test that catches it passed, or if
  its sentence begins with a function that is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from grader.diagnose.answers import Answer, alike, same
from grader.diagnose.evidence import Certainty, Evidence, Source
from grader.diagnose.fingerprints import Fault, Fingerprints, Text, deviations
from grader.diagnose.kept_answer import EDGE
from grader.diagnose.probe import Answers, owner
from grader.result import ALTERNATIVE, WrongAnswers
from grader.text import listed

_NOTHING = Answers({}, {})

_NOT_THERE = {"!NotImplementedError", "!AttributeError"}
"""Answers of code that is not written yet. They are no mistake."""

_FORBIDDEN = "!ForbiddenCall"
"""The answer of code that calls a forbidden function."""

GRADIENT = "gradient"
"""The prefix of questions about gradients."""

_ONLY_GRADIENTS = ("only the gradient",)

_GRADIENTS_TOLD = Text(
    "the output is right and its gradient is not: something goes wrong on the way back",
    "Is there a backward pass of your own, a hook, or a part that is detached? "
    "torch.autograd.gradcheck compares a gradient with small steps.",
)
"""The text for parts in which only gradients are wrong."""

_MOST_ALIKE = 2
"""The maximum number of reported mistakes that cannot be distinguished."""

_STOPS_OUTWEIGHED = 10
"""The number of exceptions, where a mistake returns a number, that cancel one matching number."""

_SHARE_EXPLAINED = 0.6
"""The share of open wrong answers at the edges that a mistake must explain."""

Alternatives = list[Fault]
"""Mistakes with the same answers in a part."""


@dataclass(frozen=True)
class _FoundPart:
    """The mistakes that were found in one part.

    Attributes:
        part: the part.
        group: the selected mistakes, which have the same answers in the part.
        texts: the different texts about them.
    """

    part: str
    group: Alternatives
    texts: tuple[Text, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the mistakes."""
        return tuple(fault.name for fault in self.group)

    @property
    def thought(self) -> tuple[str, ...]:
        """The texts without nudges. Parts with equal texts show the same mistake."""
        return tuple(text.when.rstrip(".") for text in self.texts)


def diagnose(
    known: Fingerprints, answers: Mapping[str, Answers], passed: Collection[str] = ()
) -> list[Evidence]:
    """Return the evidence that explains wrong answers, part by part.

    Args:
        known: the answers of the reference and of the known mistakes.
        answers: the answers of the student's code.
        passed: ids of the tests that the code passed.
    """
    wrong = deviations(answers, known.reference)
    known = _consistent(known, {owner(part) for part in wrong}, passed)
    found = _found(answers, wrong, known)
    return _told(found, wrong, known) if found else _only_gradients(answers, wrong, known)


def _consistent(known: Fingerprints, wrong: set[str], passed: Collection[str]) -> Fingerprints:
    """Return the fingerprints without the mistakes that contradict a right function or a test.

    Args:
        known: all fingerprints.
        wrong: the functions and classes with wrong answers.
        passed: ids of the tests that passed. The test that catches a mistake may cover a function
            that the student's class does not use. So a passed test excludes a mistake only if all
            functions and classes that the mistake changes are wrong.
    """
    right = {owner(part) for part in known.reference} - wrong

    def is_consistent(fault: Fault) -> bool:
        about = known.texts[fault.name].when.partition(" ")[0]
        owners = {owner(part) for part in fault.deviations}
        return about not in right and not (fault.caught_by in passed and owners <= wrong)

    return replace(known, faults=tuple(filter(is_consistent, known.faults)))


def _found(
    answers: Mapping[str, Answers], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[_FoundPart]:
    """Return the known mistakes that explain each wrong part."""
    fits = {
        part: _fitting(part, answers[part], _not_refuted(part, answers, wrong, known))
        for part in known.reference
        if part in wrong
    }
    unexplained = {part: answers[part] for part, groups in fits.items() if not groups}
    fits = {
        part: [g for g in groups if not _is_borne(answers[part], g[0], part, unexplained)]
        for part, groups in fits.items()
    }
    return _meant_in_all(fits, wrong, known)


def _only_gradients(
    answers: Mapping[str, Answers], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[Evidence]:
    """Return the evidence for parts in which only gradients are wrong.

    These gradients must be finite and have the right shape. The names of such questions begin with
    `GRADIENT`. Return nothing if any other answer is wrong.
    """
    parts = [
        part
        for part, given in wrong.items()
        if not given.main
        and all(
            question.startswith(GRADIENT)
            and (answer.shape, answer.lost) == (known.reference[part].edges[question].shape, 0)
            for question, answer in given.edges.items()
        )
        and not any(a.instead for a in answers[part].main.values())
    ]
    if not parts or len(parts) < len(wrong):
        return []
    sentence = _sentence((_GRADIENTS_TOLD,), parts, known)
    return [Evidence(sentence, Certainty.SOME, Source.CATALOGUE, tuple(parts), _ONLY_GRADIENTS)]


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
    named = {part for each in found for part in each.parts if each.names != _ONLY_GRADIENTS}
    wrong = deviations(answers, known.reference).items()
    texts = {
        part: {q: a.write() for q, a in given.main.items()}
        | {EDGE + q: a.write() for q, a in given.edges.items()}
        for part, given in wrong
    }
    return {
        part: given
        for part, given in without_named(texts, named).items()
        if {*given.values()} - _NOT_THERE and _FORBIDDEN not in given.values()
    }


def without_named(unknown: Mapping[str, WrongAnswers], named: set[str]) -> dict[str, WrongAnswers]:
    """Omit named parts, and parts of the same owners that only raise exceptions."""
    owners = {owner(part) for part in named}
    return {
        part: given
        for part, given in unknown.items()
        if part not in named and not (owner(part) in owners and all(map(_stops, given.values())))
    }


def kept_answers(given: WrongAnswers) -> Answers:
    """Return the answers of the texts that `unnamed` returned."""
    main = {q: Answer.read(text) for q, text in given.items() if not q.startswith(EDGE)}
    edges = {q: Answer.read(text) for q, text in given.items() if q.startswith(EDGE)}
    return Answers(main, {q.removeprefix(EDGE): answer for q, answer in edges.items()})


def _stops(text: str) -> bool:
    return Answer.read(text).stops


# Exclude mistakes that other parts of the same class contradict


def _not_refuted(
    part: str, answers: Mapping[str, Answers], wrong: Mapping[str, Answers], known: Fingerprints
) -> Fingerprints:
    """Return the fingerprints without mistakes that another part of the same class contradicts.

    A few wrong numbers may match by chance. So a mistake is excluded if another part, which it
    should change too, returns only other numbers. But if a mistake explains all wrong main answers
    of this part, wrong numbers elsewhere come from a second mistake. Then only parts with right
    main answers can exclude it.
    """
    others = {p: given for p, given in answers.items() if p != part and owner(p) == owner(part)}
    right = {p: given for p, given in others.items() if p not in wrong or not wrong[p].main}

    def may_be(fault: Fault) -> bool:
        is_its_own = _is_its_own(wrong[part], fault.deviations[part])
        speaking = right if is_its_own else others
        return not any(_refutes(given, fault, p) for p, given in speaking.items())

    faults = [fault for fault in known.faults if part in fault.deviations and may_be(fault)]
    return replace(known, faults=tuple(faults))


def _is_its_own(given: Answers, of_fault: Answers) -> bool:
    """Return whether a mistake explains all wrong main answers, and one is no chance match."""
    return _same_numbers(given, of_fault) and any(
        answer.is_value and _weight(answer) == 1 for answer in of_fault.main.values()
    )


def _refutes(given: Answers, fault: Fault, part: str) -> bool:
    """Return whether a part returns numbers where a mistake changes them, and none are the same.

    Answers that the mistake loses (NaN or infinite) do not count: another way to write it may
    return numbers there, for example for a query that sees no key.
    """
    own = fault.deviations.get(part, _NOTHING).main
    asked = [q for q, a in own.items() if a.is_value and not a.is_lost and q in given.main]
    values = [q for q in asked if given.main[q].is_value]
    return bool(values) and not any(same(given.main[q], own[q], dtype=False) for q in values)


def _is_borne(given: Answers, fault: Fault, part: str, unexplained: Mapping[str, Answers]) -> bool:
    """Return whether unrelated exceptions are at least as many as the other answers.

    A class that cannot be constructed with some sizes raises the same exception at each question
    with such sizes. These exceptions are no evidence for the mistake.

    Args:
        given: the student's answers in the part.
        fault: the mistake that fits the part.
        part: the part.
        unexplained: the answers of parts that no mistake fits.
    """
    stops = {
        answer.instead
        for other, answers in unexplained.items()
        for question, answer in answers.main.items()
        if owner(other) == owner(part)
        and answer.stops
        and question not in fault.deviations.get(other, _NOTHING).main
    }
    own = fault.deviations[part]
    pairs = [(a, given.main.get(q)) for q, a in own.main.items()]
    pairs += [(a, given.edges.get(q)) for q, a in own.edges.items()]
    speaking = sum(answer is not None and answer.instead not in stops for _, answer in pairs)
    borne = sum(answer is not None and answer.instead in stops for _, answer in pairs)
    return bool(stops) and borne >= max(1, speaking)


# Match mistakes with a part


def _fitting(part: str, given: Answers, known: Fingerprints) -> list[Alternatives]:
    """Return the mistakes that fit a part, in groups with the same answers."""
    reference = known.reference[part]
    main = _best(
        (_agreement(given, fault.deviations[part], reference), fault) for fault in known.faults
    )
    if not main and _is_wrong(given.main, reference.main):
        main = _stopping_there_only(part, given, known)
        if not main:
            return []  # what goes wrong at the edges may be due to that
    groups = [_closest_at_edges(main, part, given, reference)] if main else []
    explained = groups[0][0].deviations[part].edges if groups else {}
    return groups + _edge_groups(part, given.edges, explained, known)


def _is_wrong(given: Mapping[str, Answer], right: Mapping[str, Answer]) -> bool:
    return any(q in right and not same(a, right[q], dtype=False) for q, a in given.items())


def _agreement(given: Answers, of_fault: Answers, reference: Answers) -> float:
    """Return a score for how well main answers match a mistake's; 0 if they do not."""
    if not of_fault.main:
        return 0.0
    speaking, stops, score = 0.0, 0, 0.0
    for question, answer in given.main.items():
        if question not in reference.main:
            continue
        expected = of_fault.main.get(question, reference.main[question])
        if _is_forbidden(expected) and not _is_forbidden(answer):
            return 0.0
        if answer.is_value and expected.is_value:
            if not same(answer, expected, dtype=False):
                return 0.0
            # A right answer matches no mistake, even if the mistake's answer is close to it.
            is_wrong = question in of_fault.main and not same(
                answer, reference.main[question], dtype=False
            )
            speaking, score = speaking + is_wrong * _weight(answer), score + is_wrong
        elif answer.instead and expected.instead:
            score += 0.5
        else:
            stops, score = stops + answer.stops, score - 0.25
    if speaking * _STOPS_OUTWEIGHED > stops or _is_told_by_edges(given, of_fault, reference):
        return max(score, 0.01)
    return 0.0


def _weight(answer: Answer) -> float:
    """Return the weight of a wrong answer that is the same as a mistake's.

    A bool or a single number may be the same by chance.
    """
    if answer.is_lost:
        return 0.0
    return 0.1 if answer.dtype == "bool" or answer.shape == "scalar" else 1.0


def _is_told_by_edges(given: Answers, of_fault: Answers, reference: Answers) -> bool:
    """Return whether code without wrong numbers stops, or loses all numbers, as a mistake does.

    All answers of the mistake at the edges must match too, and one of them must be a number. A
    forbidden call needs no such match.
    """
    if not _stops_at_the_same(given, of_fault, reference):
        return False
    if any(map(_is_forbidden, of_fault.main.values())):
        return True
    edges = of_fault.edges.items()
    return all(q in given.edges and alike(given.edges[q], a) for q, a in edges) and any(
        a.is_value and not a.is_lost for _, a in edges
    )


def _stops_at_the_same(given: Answers, of_fault: Answers, reference: Answers) -> bool:
    """Return whether the same main answers are wrong, all with the same exception or lost."""
    right = reference.main
    wrong = {q for q, a in given.main.items() if q in right and not same(a, right[q], dtype=False)}
    if wrong != of_fault.main.keys():
        return False
    pairs = [(given.main[q], of_fault.main[q]) for q in wrong]
    return all((a.instead or a.is_lost) and a.instead == b.instead for a, b in pairs)


def _stopping_there_only(part: str, given: Answers, known: Fingerprints) -> Alternatives:
    """Return the mistakes without any number that stop at the same questions as the code.

    If there are too many, return none, since the exception is then more helpful than names.
    """
    reference = known.reference[part]
    found = [
        fault
        for fault in known.faults
        if not _has_numbers(fault)
        and len(fault.deviations[part].main) < len(reference.main)
        and _stops_at_the_same(given, fault.deviations[part], reference)
        and all(q in fault.deviations[part].edges for q, a in given.edges.items() if a.stops)
    ]
    return found if len(found) <= _MOST_ALIKE else []


def _has_numbers(fault: Fault) -> bool:
    """Return whether a mistake has a wrong number in any part."""
    return any(
        answer.is_value and not answer.is_lost
        for own in fault.deviations.values()
        for answer in (*own.main.values(), *own.edges.values())
    )


def _is_forbidden(answer: Answer) -> bool:
    """Return whether code called a forbidden function. No other answer matches this one."""
    return answer.instead == "ForbiddenCall"


def _best(scored: Iterable[tuple[float, Fault]]) -> Alternatives:
    """Return the mistakes with the highest score above 0."""
    found = [(score, fault) for score, fault in scored if score > 0]
    best = max((score for score, _ in found), default=0)
    return [fault for score, fault in found if score == best]


def _closest_at_edges(
    faults: Alternatives, part: str, given: Answers, reference: Answers
) -> Alternatives:
    """Return the mistakes that match best at the edges, of those with the same main answers."""

    def likeness(fault: Fault) -> int:
        edges = fault.deviations[part].edges
        return sum(_is_as_expected(q, a, edges, reference.edges) for q, a in given.edges.items())

    if all(not fault.deviations[part].edges for fault in faults):
        return faults
    most = max(map(likeness, faults))
    return [fault for fault in faults if likeness(fault) == most]


def _is_as_expected(
    question: str, answer: Answer, of_fault: Mapping[str, Answer], right: Mapping[str, Answer]
) -> bool:
    """Return whether code with a mistake would give this answer at the edges.

    If the mistake changes the answer, both must fail in the same manner. Otherwise the answer must
    be right.
    """
    if question in of_fault:
        return alike(answer, of_fault[question])
    return question in right and same(answer, right[question])


def _edge_groups(
    part: str, given: Mapping[str, Answer], explained: Mapping[str, Answer], known: Fingerprints
) -> list[Alternatives]:
    """Return the mistakes at the edges that explain the answers which `explained` leaves open.

    Args:
        part: the part.
        given: the student's answers at its edges.
        explained: the answers there of the mistake that fits the main answers, if any.
        known: the fingerprints.
    """
    right = known.reference[part].edges
    wrong = {q for q, a in given.items() if q in right and not same(a, right[q])}
    open_questions = {q for q in wrong if not _is_as_expected(q, given[q], explained, right)}
    candidates = [
        (fault, own.edges)
        for fault in known.faults
        if (own := fault.deviations[part]).edges
        and not own.main
        and all(q in wrong and _fails_so(given[q], a) for q, a in own.edges.items())
    ]
    groups: list[Alternatives] = []
    while open_questions and len(groups) < 2:
        merits = [(_explained(e, given, open_questions), f, e) for f, e in candidates]
        best = max((merit for merit, _, _ in merits), default=(0, 0))
        if not best[0] or best[0] < _SHARE_EXPLAINED * len(open_questions):
            break
        chosen = [(fault, edges) for merit, fault, edges in merits if merit == best]
        groups.append([fault for fault, _ in chosen])
        open_questions -= chosen[0][1].keys()
    return groups


def _fails_so(answer: Answer, of_fault: Answer) -> bool:
    """Return whether an answer fails in the same manner as a mistake's."""
    return alike(answer, of_fault) and _is_forbidden(answer) == _is_forbidden(of_fault)


def _explained(
    edges: Mapping[str, Answer], given: Mapping[str, Answer], open_questions: set[str]
) -> tuple[int, int]:
    """Return how many open questions a mistake explains, and how many with the same answer."""
    explained = edges.keys() & open_questions
    return len(explained), sum(same(edges[q], given[q]) for q in explained)


# Select the mistakes to report, and write the sentences


def _meant_in_all(
    fits: Mapping[str, list[Alternatives]], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[_FoundPart]:
    """Return the mistakes to report for each part."""
    shows = Counter(fault.name for groups in fits.values() for group in groups for fault in group)
    found = []
    for part, groups in fits.items():
        for group in groups:
            meant = _meant(group, shows, wrong)
            texts = _different(meant, known)
            if len(texts) <= _MOST_ALIKE:
                found.append(_FoundPart(part, meant, tuple(texts)))
    return found


def _meant(group: Alternatives, shows: Counter[str], wrong: Mapping[str, Answers]) -> Alternatives:
    """Select the most likely mistakes of a group with the same answers in a part.

    Prefer mistakes that explain the most parts. Of these, prefer mistakes that change the fewest
    right parts. Count a class without wrong parts once.
    """
    wrong_owners = {owner(part) for part in wrong}

    def merit(fault: Fault) -> tuple[int, int]:
        right = fault.deviations.keys() - wrong.keys()
        claimed = {part if owner(part) in wrong_owners else owner(part) for part in right}
        return shows[fault.name], -len(claimed)

    best = max(map(merit, group))
    return [fault for fault in group if merit(fault) == best]


def _same_numbers(given: Answers, of_fault: Answers) -> bool:
    """Return whether the same main answers are wrong, with the same values."""
    own = of_fault.main
    return own.keys() == given.main.keys() and all(
        same(answer, given.main[question], dtype=False) for question, answer in own.items()
    )


def _told(
    found: list[_FoundPart], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[Evidence]:
    """Return the evidence of all parts; mention each mistake once, with all its parts."""
    alike: dict[tuple[str, ...], list[_FoundPart]] = {}
    for each in found:
        alike.setdefault(each.thought, []).append(each)
    told = {owner(each.part) for each in found}
    untold = [part for part, given in wrong.items() if owner(part) not in told and _is_there(given)]
    return [_evidence(of_one, untold, known) for of_one in alike.values()]


def _is_there(given: Answers) -> bool:
    """Return whether any wrong answer comes from code that is written."""
    answers = (*given.main.values(), *given.edges.values())
    return any(f"!{answer.instead}" not in _NOT_THERE for answer in answers)


def _evidence(found: list[_FoundPart], untold: list[str], known: Fingerprints) -> Evidence:
    """Return the evidence of a mistake that was found in some parts.

    Args:
        found: the parts in which the mistake was found.
        untold: wrong parts of functions and classes without a named mistake.
        known: the fingerprints.
    """
    first, parts = found[0], list(dict.fromkeys(each.part for each in found))
    names = tuple(dict.fromkeys(name for each in found for name in each.names))
    is_callers = any(_calls(first.part, part, known) for part in untold)
    faults = [fault for each in found for fault in each.group]
    return Evidence(
        _sentence(first.texts, parts, known, is_callers=is_callers),
        Certainty.ALL,
        Source.CATALOGUE,
        tuple(parts),
        names,
        tuple(dict.fromkeys(fault.caught_by for fault in faults if fault.caught_by)),
        any(each.group[0].deviations[each.part].main for each in found),
    )


def _calls(part: str, other: str, known: Fingerprints) -> bool:
    """Return whether a part seems to call an earlier one: some mistake changes both."""
    order = [*known.reference]
    return order.index(other) < order.index(part) and any(
        part in fault.deviations and other in fault.deviations for fault in known.faults
    )


def _sentence(
    texts: tuple[Text, ...], parts: list[str], known: Fingerprints, *, is_callers: bool = False
) -> str:
    """Return the sentence for the student. It must suit wrong numbers, missing names and errors.

    Name the first function once, and give a nudge once. A mistake that shows in several functions
    may be in the first one alone, if the others call it. A mistake that shows in one function may
    be in another that it calls, if that is wrong too (`is_callers`).
    """
    first, *others = _shown(parts)
    text, *further = texts
    seen = f" (seen in {listed(others)}, too)" if others else ""
    if text.when.startswith(f"{first} "):
        callers = ", or what it calls," if is_callers else ""
        text = replace(text, when=f"{first}{callers}{seen}{text.when.removeprefix(first)}")
        where = "It"
    elif len(_shown(known.reference)) == 1 and not others and not is_callers:
        where = "It"
    else:
        where = f"In {first}{', or in what it calls' if is_callers else ''}{seen}, it"
    looks = [each.look for each in texts]
    told = [
        f"{each.when}. {'' if each.look in looks[place + 1 :] else each.look}".strip()
        for place, each in enumerate([text, *further])
    ]
    return f"{where} looks as if {ALTERNATIVE.join(told)}"


def _shown(parts: Iterable[str]) -> list[str]:
    """Return the functions and classes of some parts, such as f for "f: defaults"."""
    return list(dict.fromkeys(owner(part) for part in parts))


def _different(faults: Alternatives, known: Fingerprints) -> list[Text]:
    """Return the different texts about some mistakes; equal texts (without nudges) count once."""
    thoughts: dict[str, Text] = {}
    for fault in faults:
        text = known.texts[fault.name]
        thoughts.setdefault(text.when.rstrip("."), text)
    return list(thoughts.values())
