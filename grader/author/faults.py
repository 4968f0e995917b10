"""Faults as switches: a reference that can be told to make mistakes, one or two at a time.

`solutions/NN-name/faults.py` has `SWITCHES` and `faulty`. A switch is one decision, such as by what
the scores are divided; each of its values is a wrong way to decide it, with a pair of sentences:
the end of "It looks as if ...", and what to look at. `faulty(switch="value")` returns an object
with the functions and classes that the fault is in, and all else right. `COMMON` names the values
that are met often enough to come in pairs, and `AT_EDGES`, which may be left out, the switches that
are asked at the edges, too: there show wrong gradients, and what goes wrong with long input only.
So a family of mistakes is told member by member, and two mistakes at once are told as two, without
a file for each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

from grader.answer import Answer
from grader.course import Course, Problem
from grader.errors import CourseError
from grader.loading import load_module
from grader.testing.diagnosis.answers import same
from grader.testing.diagnosis.fingerprints import Fault, Text, deviations
from grader.testing.diagnosis.probe import Answers, Probe, ask, owner

Faulty = Callable[..., Any]


def switched(
    course: Course, problem: Problem, probe: Probe, reference: Mapping[str, Answers]
) -> tuple[list[Fault], dict[str, Text]]:
    """Return the faults that a problem's switches make, and their texts.

    They are each value of each switch, and the pairs of two common values of different switches,
    but for a pair that answers as a single fault does, or as another pair.

    Args:
        course: where `faults.py` is looked for.
        problem: whose faults.
        probe: the problem's questions.
        reference: the right answers.

    Raises:
        CourseError: without a fault, what the switches make doesn't answer as the reference does.
    """
    path = course.solution(problem).with_name("faults.py")
    if not path.is_file():
        return [], {}
    module = load_module(path, f"faults_{problem.id[:2]}")
    at_edges = getattr(module, "AT_EDGES", ())
    without = _fault([], module.faulty, probe, reference, edges=bool(at_edges)).deviations
    if wrong := [part for part, answers in without.items() if answers.main]:
        raise CourseError(f"{path} is wrong in {', '.join(wrong)} before a fault is put into it")
    values = [(switch, value) for switch, texts in module.SWITCHES.items() for value in texts]
    singles = {
        each: _at_edges(_fault([each], module.faulty, probe, reference, edges=True), without)
        if each[0] in at_edges
        else _fault([each], module.faulty, probe, reference)
        for each in values
    }
    common = [(switch, value) for switch, value in values if value in module.COMMON.get(switch, ())]
    pairs = [
        _fault(
            [one, other],
            module.faulty,
            probe,
            reference,
            # What neither changes by itself both don't change together.
            parts=singles[one].deviations.keys() | singles[other].deviations.keys(),
        )
        for one, other in itertools.combinations(common, 2)
        if one[0] != other[0]
    ]
    texts = {_name(s, v): Text(*module.SWITCHES[s][v]) for s, v in values}
    found = [fault for fault in singles.values() if fault.deviations]
    return [*found, *_new(pairs, found)], texts


def _fault(
    values: list[tuple[str, str]],
    faulty: Faulty,
    probe: Probe,
    reference: Mapping[str, Answers],
    parts: Set[str] | None = None,
    *,
    edges: bool = False,
) -> Fault:
    """Return what one fault, or two at once, answer to the main questions of the parts it has.

    Args:
        values: the faults.
        faulty: puts them into the reference.
        probe: the problem's questions.
        reference: the right answers.
        parts: which parts to ask; all when left out.
        edges: whether to ask what is at the edges, too.
    """
    code = faulty(**dict(values))
    answers = ask(probe, code, edges=edges, parts=parts)
    answers = {part: given for part, given in answers.items() if hasattr(code, owner(part))}
    names = tuple(_name(switch, value) for switch, value in values)
    return Fault(names, deviations(answers, reference))


def _at_edges(fault: Fault, without: Mapping[str, Answers]) -> Fault:
    """Return a fault without what is wrong at the edges with no fault switched on.

    What the switches are put into need not refuse, raise and keep all that the reference does.
    """
    left = {
        part: Answers(answers.main, _but(answers.edges, without.get(part, Answers({}, {})).edges))
        for part, answers in fault.deviations.items()
    }
    return Fault(fault.names, {p: given for p, given in left.items() if given.main or given.edges})


def _but(edges: Mapping[str, Answer], others: Mapping[str, Answer]) -> dict[str, Answer]:
    return {question: answer for question, answer in edges.items() if question not in others}


def _name(switch: str, value: str) -> str:
    return f"{switch}: {value}"


def _new(pairs: Iterable[Fault], singles: list[Fault]) -> Iterator[Fault]:
    """Yield the pairs with, in some part, main answers that no fault before them has."""
    known = list(singles)
    for pair in pairs:
        parts = {
            part: answers
            for part, answers in pair.deviations.items()
            if answers.main and not any(_same_main(part, answers, fault) for fault in known)
        }
        if parts:
            known.append(Fault(pair.names, parts))
            yield known[-1]


def _same_main(part: str, answers: Answers, fault: Fault) -> bool:
    own = fault.deviations.get(part)
    if own is None or own.main.keys() != answers.main.keys():
        return False
    return all(same(answer, own.main[q], dtype=False) for q, answer in answers.main.items())
