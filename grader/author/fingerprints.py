"""The fingerprints of faults, as the audit makes them and as it uses them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from grader.author.adoption import adopted
from grader.author.candidates import Kind
from grader.author.faults import switched
from grader.author.running import Outcome
from grader.course import Course, Problem
from grader.files import sha256_of
from grader.loading import load_module
from grader.result import Status, TestResult
from grader.testing.diagnosis.answers import same
from grader.testing.diagnosis.fingerprints import (
    Fault,
    Fingerprints,
    Text,
    deviations,
    is_switched,
)
from grader.testing.diagnosis.naming import diagnose
from grader.testing.diagnosis.probe import Answers, ask, load_probe
from grader.testing.evidence import ranked
from grader.testing.quiet import quiet
from grader.testing.session import DIAGNOSED

Switches = tuple[list[Fault], dict[str, Text]]
"""What a problem's switches make: the faults, and what to tell of them."""


def faults_switched_on(course: Course, problem: Problem, *, anew: bool = False) -> Switches:
    """Return what a problem's switches make; in a process of the pool.

    What the kept fingerprints say of them holds as long as nothing has changed that it hangs on:
    some hundred faults of a problem answer some hundred questions each.

    Args:
        course: where the switches are.
        problem: whose switches.
        anew: whether to ask them in any case.

    Raises:
        CourseError: without a fault, what they make doesn't answer as the reference does.
    """
    known = Fingerprints.load(problem.fingerprints)
    switches = _switches_of(known)
    if not anew and known.switches and known.switches == switches_sha256(course, problem, switches):
        return switches
    torch.set_num_threads(1)  # small questions, for which threads only wait
    probe = load_probe(problem)
    if probe is None:
        return [], {}
    with quiet(), torch.enable_grad():
        reference = ask(probe, load_module(course.solution(problem), f"solution_{problem.id[:2]}"))
        return switched(course, problem, probe, reference)


def _switches_of(known: Fingerprints) -> Switches:
    """Return what kept fingerprints say of faults that are switched on."""
    faults = [fault for fault in known.faults if all(map(is_switched, fault.names))]
    return faults, {name: text for name, text in known.texts.items() if is_switched(name)}


def switches_sha256(course: Course, problem: Problem, switches: Switches) -> str:
    """Return a hash over what switches make and all that it hangs on: code, questions and torch."""
    root, solution = Path(__file__).parents[1], course.solution(problem)
    paths = [
        *root.glob("testing/**/*.py"),
        *(root / name for name in ("answer.py", "cost.py", "loading.py")),
        *(root / "author" / name for name in ("faults.py", "backward.py")),
        *problem.folder.parent.glob("*.py"),
        *(problem.probe_file, solution, solution.with_name("faults.py")),
    ]
    code = sha256_of({str(n): path for n, path in enumerate(sorted(paths)) if path.is_file()})
    faults, texts = switches
    made = [*(fault.write() for fault in faults), *(f"{n} {t}" for n, t in sorted(texts.items()))]
    told = "\n".join([code, torch.__version__.partition("+")[0], *made])
    return hashlib.sha256(told.encode()).hexdigest()


def fingerprints_of(
    course: Course, problem: Problem, outcomes: list[Outcome], switches: Switches
) -> Fingerprints:
    """Return what is kept of a problem: what the reference and all known faults answer.

    Args:
        course: where the problem's switches are.
        problem: whose fingerprints.
        outcomes: of the problem's solution and its catalogued mistakes.
        switches: what the problem's switches make.
    """
    if not problem.probe_file.is_file():
        return Fingerprints()
    reference = next(o.answers for o in outcomes if o.candidate.kind is Kind.SOLUTION)
    mistakes = [o for o in outcomes if o.candidate.kind is Kind.MISTAKE]
    catalogue = [
        Fault((o.candidate.name,), deviations(o.answers, reference)) for o in mistakes if o.answers
    ]
    faults, texts = switches[0], dict(switches[1])
    texts |= {outcome.candidate.name: outcome.text for outcome in mistakes}
    answers_alone, their_texts = adopted(course, problem)
    return Fingerprints(
        reference,
        (*catalogue, *faults, *answers_alone),
        texts | their_texts,
        switches_sha256(course, problem, switches),
    )


def diagnosed(outcome: Outcome, known: Fingerprints) -> Outcome:
    """Return the outcome with the diagnosis that the known fingerprints give."""
    found = diagnose(known, outcome.answers)
    names = tuple(name for diagnosis in found for name in diagnosis.names)
    tests = [_with_diagnosis(test, names) for test in outcome.result.tests]
    outcome.result.tests[:] = tests
    statuses = {test.status for test in tests}
    if statuses & DIAGNOSED and Status.TIMEOUT not in statuses:  # as where students' code is graded
        outcome.result.diagnoses = [diagnosis.sentence for diagnosis in ranked(found)]
    return outcome


def _with_diagnosis(test: TestResult, names: tuple[str, ...]) -> TestResult:
    return test if test.status is Status.PASSED else replace(test, diagnosis=names)


def same_fingerprints(kept: Fingerprints, fresh: Fingerprints) -> bool:
    """Tell whether kept fingerprints are those that were found now."""
    if kept.texts != fresh.texts or len(kept.faults) != len(fresh.faults):
        return False
    pairs = zip(kept.faults, fresh.faults, strict=True)
    return _same_answers(kept.reference, fresh.reference) and all(
        a.names == b.names and _same_answers(a.deviations, b.deviations) for a, b in pairs
    )


def _same_answers(kept: Mapping[str, Answers], fresh: Mapping[str, Answers]) -> bool:
    if kept.keys() != fresh.keys():
        return False
    asked = [
        (old, new)
        for part in kept
        for old, new in (
            (kept[part].main, fresh[part].main),
            (kept[part].edges, fresh[part].edges),
        )
    ]
    return all(a.keys() == b.keys() and all(same(a[q], b[q]) for q in a) for a, b in asked)
