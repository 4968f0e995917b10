"""Finds the known faults whose answers a student's code gives: part by part, then told together.

Each function and class is looked at by itself, since a student may write a module without the
function beside it. In a part, main questions come first. A fault fits when no number of the
student's contradicts its numbers, and at least one wrong number is exactly its. Exceptions
contradict nothing: the same mistake, written in another way, may stop where the other goes on.
But who calls a forbidden function is stopped there in every spelling.
What main questions leave open, the edges tell. A class may have several parts; a fault that one of
them speaks against is not named for another. Where gradients alone are wrong, in a way that no
fault has, just that is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from grader.result import WrongAnswers
from grader.testing.diagnosis.answers import Answer, alike, same
from grader.testing.diagnosis.fingerprints import Fault, Fingerprints, Text, deviations
from grader.testing.diagnosis.probe import Answers, owner
from grader.unknown import EDGE

_NOTHING = Answers({}, {})

_NOT_THERE = {"!NotImplementedError", "!AttributeError"}
"""What code answers that isn't written yet, which is no fault."""

_FORBIDDEN = "!ForbiddenCall"
"""What code answers that calls what a problem forbids."""

_SHARE_EXPLAINED = 0.6
"""The share of wrong answers at the edges that a fault must explain to be named for them."""

GRADIENT = "gradient"
"""How the questions begin that are about gradients."""

_ONLY_GRADIENTS = "only the gradient"

_GRADIENTS_TOLD = Text(
    "the output is right and its gradient is not: something goes wrong on the way back",
    "Is there a backward pass of your own, a hook, or a part that is detached? "
    "torch.autograd.gradcheck compares a gradient with small steps.",
)
"""What is told where wrong gradients are all that is known."""

_MOST_ALIKE = 2
"""How many faults are told that answer alike. More than that is no answer."""


@dataclass(frozen=True)
class Diagnosis:
    """A known mistake whose answers the student's code gives.

    Attributes:
        mistakes: the names of the mistakes in the catalogue; several when they answer alike.
        text: what to tell the student.
        parts: the functions and classes in which it shows.
    """

    mistakes: tuple[str, ...]
    text: str
    parts: tuple[str, ...] = ()


def diagnose(known: Fingerprints, answers: Mapping[str, Answers]) -> list[Diagnosis]:
    """Return the known faults that explain what is wrong in `answers`; none where nothing is.

    Args:
        known: what the reference and the known faults answer.
        answers: what the student's code answered.
    """
    wrong = deviations(answers, known.reference)
    fits = {
        part: _fitting(part, answers[part], _not_refuted(part, answers, known))
        for part in known.reference
        if part in wrong
    }
    unexplained = {part: answers[part] for part, groups in fits.items() if not groups}
    found = [
        (part, group)
        for part, groups in fits.items()
        for group in groups
        if not _only_stops(answers[part], group[0], part, unexplained)
    ]
    return _told(found, known) if found else _only_gradients(answers, wrong, known)


def _only_gradients(
    answers: Mapping[str, Answers], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[Diagnosis]:
    """Tell of parts whose answers are right but for gradients, which are finite numbers, but wrong.

    By their names the questions about gradients are known.
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
    return [
        Diagnosis((_ONLY_GRADIENTS,), _sentence((_GRADIENTS_TOLD,), parts, known), tuple(parts))
    ]


def _not_refuted(part: str, answers: Mapping[str, Answers], known: Fingerprints) -> Fingerprints:
    """Return what is known without the faults that another part of the same class speaks against.

    Few wrong numbers are easily alike by chance. A fault that should also show in what a model is
    made of is none where that is right.
    """
    others = {p: given for p, given in answers.items() if p != part and owner(p) == owner(part)}
    faults = [
        fault
        for fault in known.faults
        if part in fault.deviations
        and not any(_refutes(given, fault, p, known) for p, given in others.items())
    ]
    return replace(known, faults=tuple(faults))


def _refutes(given: Answers, fault: Fault, part: str, known: Fingerprints) -> bool:
    """Tell whether a part is right wherever a fault would give a wrong number in it."""
    own, right = fault.deviations.get(part, _NOTHING).main, known.reference[part].main
    asked = [q for q, answer in own.items() if answer.is_value and q in given.main]
    return bool(asked) and all(same(given.main[q], right[q], dtype=False) for q in asked)


def _only_stops(
    given: Answers, fault: Fault, part: str, unexplained: Mapping[str, Answers]
) -> bool:
    """Tell whether all that speaks for a fault in a part are exceptions with another reason.

    A class that can't be made with some sizes raises the same wherever a question has such sizes.

    Args:
        given: what was answered in the part.
        fault: what fits there.
        part: which one it is.
        unexplained: the answers of parts where nothing fits.
    """
    stops = {
        answer.instead
        for other, answers in unexplained.items()
        for question, answer in answers.main.items()
        if owner(other) == owner(part)
        and question not in fault.deviations.get(other, _NOTHING).main
    }
    own = fault.deviations[part]
    evidence = [given.main.get(q) for q in own.main] + [given.edges.get(q) for q in own.edges]
    return all(answer is None or (answer.instead in stops - {""}) for answer in evidence)


def unnamed(
    known: Fingerprints, answers: Mapping[str, Answers], found: Iterable[Diagnosis]
) -> dict[str, WrongAnswers]:
    """Return the wrong answers of the parts in which no known fault was found.

    A forbidden call is told as that, and is no mistake that could be learned from the answers.

    Args:
        known: what the reference answers.
        answers: what the student's code answered.
        found: what `diagnose` made of that.
    """
    named = {
        part
        for diagnosis in found
        for part in diagnosis.parts
        if diagnosis.mistakes != (_ONLY_GRADIENTS,)
    }
    wrong = deviations(answers, known.reference).items()
    texts = {
        part: {q: a.write() for q, a in given.main.items()}
        | {EDGE + q: a.write() for q, a in given.edges.items()}
        for part, given in wrong
        if part not in named
    }
    return {
        part: given
        for part, given in texts.items()
        if {*given.values()} - _NOT_THERE and _FORBIDDEN not in given.values()
    }


def _fitting(part: str, given: Answers, known: Fingerprints) -> list[list[Fault]]:
    """Return groups of faults of one part; those of a group answer alike."""
    reference = known.reference[part]
    main = _best(
        (_agreement(given, fault.deviations.get(part, _NOTHING), reference), fault)
        for fault in known.faults
    )
    groups = [_closest_at_edges(main, part, given, reference)] if main else []
    explained: Mapping[str, Answer] = {}
    if groups:
        explained = groups[0][0].deviations[part].edges
    elif _is_wrong(given.main, reference.main):
        return []  # what goes wrong at the edges may be due to that
    return groups + _edge_groups(part, given.edges, explained, known)


def _is_wrong(given: Mapping[str, Answer], right: Mapping[str, Answer]) -> bool:
    return any(q in right and not same(a, right[q], dtype=False) for q, a in given.items())


def _agreement(given: Answers, of_fault: Answers, reference: Answers) -> float:
    """Return how well a student's main answers are a fault's; 0 if they are not."""
    if not of_fault.main:
        return 0.0
    equal, score = 0, 0.0
    for question, answer in given.main.items():
        if question not in reference.main:
            continue
        expected = of_fault.main.get(question, reference.main[question])
        if _is_forbidden(expected) and not _is_forbidden(answer):
            return 0.0
        if answer.is_value and expected.is_value:
            if not same(answer, expected, dtype=False):
                return 0.0
            is_wrong = question in of_fault.main
            equal, score = equal + (is_wrong and not answer.is_lost), score + is_wrong
        elif answer.instead and expected.instead:
            score += 0.5
        else:
            score -= 0.25
    if equal:
        return max(score, 0.01)
    return score if _stops_at_the_same(given, of_fault, reference) else 0.0


def _stops_at_the_same(given: Answers, of_fault: Answers, reference: Answers) -> bool:
    """Tell whether code raises something, or loses all numbers, where a fault does and only there.

    Somewhere it has to be the same exception. If it does so at all questions, anything could be the
    reason; then a wrong value at the edges has to be the fault's, too.
    """
    right = reference.main
    wrong = {q for q, a in given.main.items() if q in right and not same(a, right[q], dtype=False)}
    answers = [given.main[q] for q in wrong] + list(of_fault.main.values())
    if wrong != of_fault.main.keys() or not all(a.instead or a.is_lost for a in answers):
        return False
    forbidden = [any(_is_forbidden(each.main[q]) for q in wrong) for each in (given, of_fault)]
    if forbidden[0] != forbidden[1]:
        return False
    if all(given.main[q].instead != of_fault.main[q].instead for q in wrong):
        return False
    edges = of_fault.edges.items()
    return len(wrong) < len(right) or (
        all(q in given.edges and alike(given.edges[q], a) for q, a in edges)
        and any(a.is_value and not a.is_lost for _, a in edges)
    )


def _is_forbidden(answer: Answer) -> bool:
    """Tell whether code called what the problem forbids: that is no spelling of anything else."""
    return answer.instead == "ForbiddenCall"


def _best(scored: Iterable[tuple[float, Fault]]) -> list[Fault]:
    """Return the faults with the highest score above 0, single ones before two at once."""
    found = [(score, -len(fault.names), fault) for score, fault in scored if score > 0]
    if not found:
        return []
    best = max((score, fewer) for score, fewer, _ in found)
    return [fault for score, fewer, fault in found if (score, fewer) == best]


def _closest_at_edges(
    faults: list[Fault], part: str, given: Answers, reference: Answers
) -> list[Fault]:
    """Of faults with the same main answers, return those that are most like it at the edges."""

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
    """Tell whether an answer at the edges is what code with a fault would give there.

    Where the fault shows, the manner counts. Where it doesn't, the answer has to be right, by the
    same measure by which it was settled where the fault shows.
    """
    if question in of_fault:
        return alike(answer, of_fault[question])
    return question in right and same(answer, right[question])


def _edge_groups(
    part: str, given: Mapping[str, Answer], explained: Mapping[str, Answer], known: Fingerprints
) -> list[list[Fault]]:
    """Return the faults that show at the edges only, for what a fault in the numbers leaves open.

    Args:
        part: where to look.
        given: the student's answers at its edges.
        explained: the answers there of the fault that was found in the numbers, if any.
        known: all faults.
    """
    right = known.reference[part].edges
    wrong = {q for q, a in given.items() if q in right and not same(a, right[q])}
    open_questions = {q for q in wrong if not _is_as_expected(q, given[q], explained, right)}
    candidates = [
        (fault, own.edges)
        for fault in known.faults
        if (own := fault.deviations.get(part, _NOTHING)).edges
        and not own.main
        and all(q in wrong and alike(given[q], a) for q, a in own.edges.items())
    ]
    groups: list[list[Fault]] = []
    while open_questions and len(groups) < 2:
        merits = [(_explained(e, given, open_questions), f, e) for f, e in candidates]
        best = max((merit for merit, _, _ in merits), default=(0, 0))
        if not best[0] or best[0] < _SHARE_EXPLAINED * len(open_questions):
            break
        chosen = [(fault, edges) for merit, fault, edges in merits if merit == best]
        groups.append([fault for fault, _ in chosen])
        open_questions -= chosen[0][1].keys()
    return groups


def _explained(
    edges: Mapping[str, Answer], given: Mapping[str, Answer], open_questions: set[str]
) -> tuple[int, int]:
    """Return how many open questions a fault explains, and how many of them to the digit."""
    explained = edges.keys() & open_questions
    return len(explained), sum(same(edges[q], given[q]) for q in explained)


def _told(found: list[tuple[str, list[Fault]]], known: Fingerprints) -> list[Diagnosis]:
    """Return what was found in all parts, each fault once, with the parts that it shows in."""
    shows = Counter(name for _, group in found for fault in group for name in set(fault.names))
    parts: dict[tuple[Text, ...], list[str]] = {}
    names: dict[tuple[Text, ...], dict[str, None]] = {}
    for part, group in found:
        texts = _different(_meant(group, shows), known)
        key = tuple(texts)[:_MOST_ALIKE]
        parts.setdefault(key, []).append(part)
        names.setdefault(key, {}).update(dict.fromkeys(n for fault in group for n in fault.names))
    return [
        Diagnosis(tuple(names[key]), _sentence(key, parts[key], known), tuple(parts[key]))
        for key in parts
    ]


def _meant(group: list[Fault], shows: Counter[str]) -> list[Fault]:
    """Return which are meant of faults that answer alike in a part.

    They are those that explain the most parts, and of these those that claim the fewest others.
    """

    def merit(fault: Fault) -> tuple[int, int]:
        return max(shows[name] for name in fault.names), -len(fault.deviations)

    best = max(map(merit, group))
    return [fault for fault in group if merit(fault) == best]


def _sentence(texts: tuple[Text, ...], parts: list[str], known: Fingerprints) -> str:
    """Return what to say; it must fit wrong numbers, and a missing name or error as well.

    A function that the text begins with isn't named twice, nor is a nudge given twice.
    """
    shown = _shown(parts)
    is_clear = len(_shown(known.reference)) == 1 or texts[0].when.startswith(f"{shown[0]} ")
    where = "It" if is_clear and len(shown) == 1 else f"In {' and '.join(shown)}, it"
    looks = [text.look for text in texts]
    told = [
        f"{text.when}. {'' if text.look in looks[place + 1 :] else text.look}".strip()
        for place, text in enumerate(texts)
    ]
    return f"{where} looks as if " + "\nOr as if ".join(told)


def _shown(parts: Iterable[str]) -> list[str]:
    """Return the functions and classes that parts belong to, such as f for "f: defaults"."""
    return list(dict.fromkeys(owner(part) for part in parts))


def _different(faults: list[Fault], known: Fingerprints) -> list[Text]:
    """Return what to tell of some faults; the same thought is told once, in its first words."""
    thoughts: dict[tuple[str, ...], Text] = {}
    for fault in faults:
        thought = tuple(known.texts[name].when.rstrip(".") for name in fault.names)
        thoughts.setdefault(thought, known.text(fault))
    return list(thoughts.values())
