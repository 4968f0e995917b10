"""Finds the known faults whose answers a student's code gives: part by part, then told together.

Each function and class is looked at by itself, since a student may write a module without the
function beside it. The rules, in the order in which they apply:

- A name rests on numbers. A fault fits a part when no number of the student's contradicts its
  numbers, and at least one wrong number is exactly its. Exceptions contradict nothing: the same
  mistake, written in another way, may stop where the other goes on. But they speak for nothing
  either, since anything may raise one. Only a fault that has no number at all is known by where it
  stops, if code stops there and nowhere else, with the same exceptions. And a call of a forbidden
  function is stopped in every spelling.
- A class may have several parts. A fault that one of them speaks against is not named for another,
  unless it gives all that is wrong there: then two faults have met. And a fault that a part shows
  may stand in another one that it calls, if that is wrong, too, and nothing is named there.
- What main questions leave open, the edges tell: all of it, or nothing.
- Of faults that answer alike two are told. More than that is no answer.
- Where gradients alone are wrong, in a way that no fault has, just that is told.
- A name must agree with the tests. A fault is not named if the test that catches it has passed, or
  if its sentence begins with a function that is right.
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
"""What code answers that isn't written yet, which is no fault."""

_FORBIDDEN = "!ForbiddenCall"
"""What code answers that calls what a problem forbids."""

GRADIENT = "gradient"
"""How the questions begin that are about gradients."""

_ONLY_GRADIENTS = ("only the gradient",)

_GRADIENTS_TOLD = Text(
    "the output is right and its gradient is not: something goes wrong on the way back",
    "Is there a backward pass of your own, a hook, or a part that is detached? "
    "torch.autograd.gradcheck compares a gradient with small steps.",
)
"""What is told where wrong gradients are all that is known."""

_MOST_ALIKE = 2
"""How many faults are told that answer alike. More than that is no answer."""

_STOPS_OUTWEIGHED = 10
"""How many exceptions, where a fault would give a number, a wrong number of its own outweighs."""

_SHARE_EXPLAINED = 0.6
"""The share of wrong answers at the edges that a fault must explain to be named for them."""

Alternatives = list[Fault]
"""Faults that answer alike in a part."""


@dataclass(frozen=True)
class _FoundPart:
    """What is told of one part.

    Attributes:
        part: which one.
        group: the faults that are meant, which answer alike.
        texts: what to tell of them.
    """

    part: str
    group: Alternatives
    texts: tuple[Text, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the faults are called."""
        return tuple(fault.name for fault in self.group)

    @property
    def thought(self) -> tuple[str, ...]:
        """What is told, but for the nudges: the same in two parts is one mistake."""
        return tuple(text.when.rstrip(".") for text in self.texts)


def diagnose(
    known: Fingerprints, answers: Mapping[str, Answers], passed: Collection[str] = ()
) -> list[Evidence]:
    """Return what explains what is wrong in `answers`, part by part; nothing where nothing is.

    Args:
        known: what the reference and the known faults answer.
        answers: what the student's code answered.
        passed: ids of the tests that the code has passed.
    """
    wrong = deviations(answers, known.reference)
    known = _consistent(known, {owner(part) for part in wrong}, passed)
    found = _found(answers, wrong, known)
    return _told(found, wrong, known) if found else _only_gradients(answers, wrong, known)


def _consistent(known: Fingerprints, wrong: set[str], passed: Collection[str]) -> Fingerprints:
    """Return what is known without the faults that contradict what is right.

    Args:
        known: all that is known.
        wrong: the functions and classes that answer wrongly.
        passed: ids of the tests that passed. The test that catches a fault may be about a function
            that the student's class does not use, so it counts only where all of these are wrong.
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
    """Return what known faults explain of each part that is wrong."""
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
    sentence = _sentence((_GRADIENTS_TOLD,), parts, known)
    return [Evidence(sentence, Certainty.SOME, Source.CATALOGUE, tuple(parts), _ONLY_GRADIENTS)]


def unnamed(
    known: Fingerprints, answers: Mapping[str, Answers], found: Iterable[Evidence]
) -> dict[str, WrongAnswers]:
    """Return the wrong answers of the parts in which no known fault was found.

    A forbidden call is told as that, and is no mistake that could be learned from the answers. Nor
    is what only stops beside a fault of the same class.

    Args:
        known: what the reference answers.
        answers: what the student's code answered.
        found: what `diagnose` made of that.
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
    """Return wrong answers without those of named parts, and what only stops beside these."""
    owners = {owner(part) for part in named}
    return {
        part: given
        for part, given in unknown.items()
        if part not in named and not (owner(part) in owners and all(map(_stops, given.values())))
    }


def kept_answers(given: WrongAnswers) -> Answers:
    """Return the answers of which `unnamed` gave the texts."""
    main = {q: Answer.read(text) for q, text in given.items() if not q.startswith(EDGE)}
    edges = {q: Answer.read(text) for q, text in given.items() if q.startswith(EDGE)}
    return Answers(main, {q.removeprefix(EDGE): answer for q, answer in edges.items()})


def _stops(text: str) -> bool:
    return Answer.read(text).stops


# Which faults can be meant at all: what other parts of a class say


def _not_refuted(
    part: str, answers: Mapping[str, Answers], wrong: Mapping[str, Answers], known: Fingerprints
) -> Fingerprints:
    """Return what is known without the faults that another part of the same class speaks against.

    Few wrong numbers are easily alike by chance. A fault that should also show in what a model is
    made of is none where that gives other numbers. But what a fault gives to the last number is
    its own: then wrong numbers elsewhere come of one more fault, and only right ones speak against.
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
    """Tell whether all that is wrong in a part is a fault's, with a number that isn't chance."""
    return _same_numbers(given, of_fault) and any(
        answer.is_value and _weight(answer) == 1 for answer in of_fault.main.values()
    )


def _refutes(given: Answers, fault: Fault, part: str) -> bool:
    """Tell whether a part gives numbers where a fault gives wrong ones, and all of them others.

    What a fault loses in one spelling may be a number in another, as where nothing can be seen.
    """
    own = fault.deviations.get(part, _NOTHING).main
    asked = [q for q, a in own.items() if a.is_value and not a.is_lost and q in given.main]
    values = [q for q in asked if given.main[q].is_value]
    return bool(values) and not any(same(given.main[q], own[q], dtype=False) for q in values)


def _is_borne(given: Answers, fault: Fault, part: str, unexplained: Mapping[str, Answers]) -> bool:
    """Tell whether what speaks for a fault is outweighed by exceptions that have another reason.

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
        and answer.stops
        and question not in fault.deviations.get(other, _NOTHING).main
    }
    own = fault.deviations[part]
    pairs = [(a, given.main.get(q)) for q, a in own.main.items()]
    pairs += [(a, given.edges.get(q)) for q, a in own.edges.items()]
    speaking = sum(answer is not None and answer.instead not in stops for _, answer in pairs)
    borne = sum(answer is not None and answer.instead in stops for _, answer in pairs)
    return bool(stops) and borne >= max(1, speaking)


# Which faults fit a part


def _fitting(part: str, given: Answers, known: Fingerprints) -> list[Alternatives]:
    """Return groups of faults of one part; those of a group answer alike."""
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
    """Return how well a student's main answers are a fault's; 0 if they are not."""
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
            # What is right but for rounding speaks for no fault, however near that comes.
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
    """Return what a wrong answer that is just a fault's speaks for that fault.

    Yes or no, or a single number, is answered alike by chance.
    """
    if answer.is_lost:
        return 0.0
    return 0.1 if answer.dtype == "bool" or answer.shape == "scalar" else 1.0


def _is_told_by_edges(given: Answers, of_fault: Answers, reference: Answers) -> bool:
    """Tell whether code without a wrong number stops, or loses all, exactly where a fault does.

    Then what it answers at the edges has to be the fault's, too, with a wrong number among it; or
    it has called what is forbidden, which is known by itself.
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
    """Tell whether code raises, or loses all numbers, just where and as a fault does."""
    right = reference.main
    wrong = {q for q, a in given.main.items() if q in right and not same(a, right[q], dtype=False)}
    if wrong != of_fault.main.keys():
        return False
    pairs = [(given.main[q], of_fault.main[q]) for q in wrong]
    return all((a.instead or a.is_lost) and a.instead == b.instead for a, b in pairs)


def _stopping_there_only(part: str, given: Answers, known: Fingerprints) -> Alternatives:
    """Return the faults that have no number at all, and stop where the code does and only there.

    Where many stop alike, the exception itself says more than any name.
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
    """Tell whether a fault is known by a wrong number, wherever that is."""
    return any(
        answer.is_value and not answer.is_lost
        for own in fault.deviations.values()
        for answer in (*own.main.values(), *own.edges.values())
    )


def _is_forbidden(answer: Answer) -> bool:
    """Tell whether code called what the problem forbids: that is no spelling of anything else."""
    return answer.instead == "ForbiddenCall"


def _best(scored: Iterable[tuple[float, Fault]]) -> Alternatives:
    """Return the faults with the highest score above 0."""
    found = [(score, fault) for score, fault in scored if score > 0]
    best = max((score for score, _ in found), default=0)
    return [fault for score, fault in found if score == best]


def _closest_at_edges(
    faults: Alternatives, part: str, given: Answers, reference: Answers
) -> Alternatives:
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
) -> list[Alternatives]:
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
    """Tell whether an answer fails in a fault's manner."""
    return alike(answer, of_fault) and _is_forbidden(answer) == _is_forbidden(of_fault)


def _explained(
    edges: Mapping[str, Answer], given: Mapping[str, Answer], open_questions: set[str]
) -> tuple[int, int]:
    """Return how many open questions a fault explains, and how many of them to the digit."""
    explained = edges.keys() & open_questions
    return len(explained), sum(same(edges[q], given[q]) for q in explained)


# What is told of what fits


def _meant_in_all(
    fits: Mapping[str, list[Alternatives]], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[_FoundPart]:
    """Return what is told of each part: of the faults that answer alike, those that are meant."""
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
    """Return which are meant of faults that answer alike in a part.

    They are those that explain the most parts, and of these those that claim the fewest of what is
    right; a class that is right in all its parts counts once.
    """
    wrong_owners = {owner(part) for part in wrong}

    def merit(fault: Fault) -> tuple[int, int]:
        right = fault.deviations.keys() - wrong.keys()
        claimed = {part if owner(part) in wrong_owners else owner(part) for part in right}
        return shows[fault.name], -len(claimed)

    best = max(map(merit, group))
    return [fault for fault in group if merit(fault) == best]


def _same_numbers(given: Answers, of_fault: Answers) -> bool:
    """Tell whether the same main answers are wrong, and alike."""
    own = of_fault.main
    return own.keys() == given.main.keys() and all(
        same(answer, given.main[question], dtype=False) for question, answer in own.items()
    )


def _told(
    found: list[_FoundPart], wrong: Mapping[str, Answers], known: Fingerprints
) -> list[Evidence]:
    """Return what was found in all parts, each thought once, with the parts that it shows in."""
    alike: dict[tuple[str, ...], list[_FoundPart]] = {}
    for each in found:
        alike.setdefault(each.thought, []).append(each)
    told = {owner(each.part) for each in found}
    untold = [part for part, given in wrong.items() if owner(part) not in told and _is_there(given)]
    return [_evidence(of_one, untold, known) for of_one in alike.values()]


def _is_there(given: Answers) -> bool:
    """Tell whether wrong answers are those of code that is written."""
    answers = (*given.main.values(), *given.edges.values())
    return any(f"!{answer.instead}" not in _NOT_THERE for answer in answers)


def _evidence(found: list[_FoundPart], untold: list[str], known: Fingerprints) -> Evidence:
    """Return what to tell of a mistake that was found in some parts.

    Args:
        found: where it shows.
        untold: wrong parts of which nothing is told.
        known: all faults.
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
    """Tell whether a part calls one that stands before it, whose faults then show in both."""
    order = [*known.reference]
    return order.index(other) < order.index(part) and any(
        part in fault.deviations and other in fault.deviations for fault in known.faults
    )


def _sentence(
    texts: tuple[Text, ...], parts: list[str], known: Fingerprints, *, is_callers: bool = False
) -> str:
    """Return what to say; it must fit wrong numbers, and a missing name or error as well.

    A function that the text begins with isn't named twice, nor is a nudge given twice. What shows
    in several may stand in the first alone, which the others call; and what shows in one may stand
    in what it calls, if that is wrong, too (`is_callers`).
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
    """Return the functions and classes that parts belong to, such as f for "f: defaults"."""
    return list(dict.fromkeys(owner(part) for part in parts))


def _different(faults: Alternatives, known: Fingerprints) -> list[Text]:
    """Return what to tell of some faults; the same thought is told once, in its first words."""
    thoughts: dict[str, Text] = {}
    for fault in faults:
        text = known.texts[fault.name]
        thoughts.setdefault(text.when.rstrip("."), text)
    return list(thoughts.values())
