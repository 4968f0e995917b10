"""Write and reuse the fingerprints of mistakes in an audit.

The answers of a mistake are kept with a hash over their inputs. While that is unchanged, the
mistake isn't probed again, as more than a thousand mistakes answer about a hundred questions each.
Neither is a variant with the same answers as the reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy
import torch

from grader.author.candidates import Candidate, CandidateKind
from grader.author.running import CandidateOutcome
from grader.code.course_modules import imported_names
from grader.course import Problem
from grader.diagnose import probe as asking
from grader.diagnose.answers import same
from grader.diagnose.evidence import ranked
from grader.diagnose.fingerprints import (
    Fault,
    Fingerprints,
    deviations,
    with_deviations,
)
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import Answers
from grader.errors import CourseError
from grader.files import sha256_of
from grader.result import DIAGNOSED, Status, TestResult

_DIGITS = 16
"""The length of kept hashes."""


class KeptAnswers:
    """The kept answers of a problem's mistakes and variants, which need not be probed again.

    Args:
        problem: the problem.
        reference: the current answers of the reference.
        anew: whether the file is rewritten at the end, so that a damaged one may be ignored.

    Raises:
        CourseError: the file is damaged.
    """

    def __init__(
        self, problem: Problem, reference: Mapping[str, Answers], *, anew: bool = False
    ) -> None:
        self._reference = reference
        self._instrument = _instrument_sha256(problem)
        try:
            known = Fingerprints.load(problem.fingerprints)
        except CourseError:
            if not anew:
                raise
            known = Fingerprints()
        # Only differences from the reference's answers are kept.
        self._is_same = _same_answers(known.reference, reference)
        self._faults = {fault.name: fault for fault in known.faults}
        self._right = known.right

    def answers(self, candidate: Candidate) -> dict[str, Answers] | None:
        """Return the answers of a mistake or variant; None if they are unknown."""
        if candidate.kind is CandidateKind.VARIANT:
            known = Fault("", {}, self._right.get(candidate.name, ""))
        else:
            known = self._faults.get(candidate.name, Fault("", {}))
        if not self._is_same or known.rests_on != self._hash(candidate, known.deviations):
            return None
        return with_deviations(self._reference, known.deviations)

    def caught_by(self, mistake: Candidate) -> str:
        """Return the id of a test that caught a mistake before; empty where none is known."""
        fault = self._faults.get(mistake.name)
        return "" if fault is None else fault.caught_by

    def fault(self, outcome: CandidateOutcome) -> Fault:
        """Return what to keep of a mistake's answers."""
        found = deviations(outcome.answers, self._reference)
        rests_on = self._hash(outcome.candidate, found)
        before = self.caught_by(outcome.candidate)
        return Fault(outcome.candidate.name, found, rests_on, _caught_by(outcome, before))

    def right(self, variants: Iterable[CandidateOutcome]) -> dict[str, str]:
        """Return what to keep of the variants that answer as the reference does."""
        return {
            outcome.candidate.name: self._hash(outcome.candidate, {})
            for outcome in variants
            if not deviations(outcome.answers, self._reference)
        }

    def _hash(self, candidate: Candidate, found: Mapping[str, Answers]) -> str:
        told = "\n".join([self._instrument, candidate.source.decode(), Fault("", found).write()])
        return hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]


def _caught_by(outcome: CandidateOutcome, before: str) -> str:
    """Return the id of a visible test that caught it: the one before, or else the fastest."""
    seconds = {test.id: test.seconds for test in outcome.caught_by if not test.hidden}
    return before if before in seconds else min(seconds, key=seconds.__getitem__, default="")


def _instrument_sha256(problem: Problem) -> str:
    """Return a hash over a problem's questions, what asks them, and torch's or NumPy's version."""
    if not problem.probe_file.is_file():
        return ""
    paths = _imported([problem.probe_file, Path(asking.__file__)], problem)
    # In an order that is the same wherever the course and the grader lie.
    in_order = sorted(paths, key=lambda path: (path.name, path.read_bytes()))
    code = sha256_of({str(n): path for n, path in enumerate(in_order)})
    values = numpy if problem.manifest.values == "numpy" else torch
    version = str(values.__version__)
    return "\n".join([code, version.partition("+")[0], *map(str, problem.entry.all_forbidden())])


_DECIDE_NO_ANSWER = ("course.py", "errors.py", "result.py")
"""Files of the grader that are imported but change no answer."""


def _imported(paths: Iterable[Path], problem: Problem) -> set[Path]:
    """Return the files that answers depend on: these, and their imports from course and grader.

    Imports are followed recursively in `diagnose` and in modules that problems share. Other modules
    of the grader count only if imported directly, or each new message would require new answers.
    """
    questions = Path(asking.__file__).parent
    roots = (questions.parents[1], problem.folder.parent)
    found: set[Path] = set()
    waiting = [path.resolve() for path in paths]
    while waiting:
        path = waiting.pop()
        if path not in found and path.name not in _DECIDE_NO_ANSWER:
            found.add(path)
            if not {questions, problem.folder.parent} & {*path.parents}:
                continue
            files = (
                root.joinpath(*name.split("."))
                for name in imported_names(path.read_bytes())
                for root in roots
            )
            waiting += [
                p.with_suffix(".py").resolve() for p in files if p.with_suffix(".py").is_file()
            ]
    return found


def fingerprints_of(
    problem: Problem, outcomes: list[CandidateOutcome], kept: KeptAnswers
) -> Fingerprints:
    """Return the fingerprints of a problem: the answers of the reference and of all mistakes.

    Args:
        problem: whose fingerprints.
        outcomes: the outcomes of the problem's solution, its variants and its mistakes.
        kept: their kept answers.
    """
    if not problem.probe_file.is_file():
        return Fingerprints()
    reference = next(o.answers for o in outcomes if o.candidate.kind is CandidateKind.SOLUTION)
    mistakes = [o for o in outcomes if o.candidate.kind is CandidateKind.MISTAKE]
    catalogue = [kept.fault(outcome) for outcome in mistakes]
    texts = {outcome.candidate.name: outcome.text for outcome in mistakes}
    right = kept.right(o for o in outcomes if o.candidate.kind is CandidateKind.VARIANT)
    return Fingerprints(reference, tuple(catalogue), texts, right)


def diagnosed(outcome: CandidateOutcome, known: Fingerprints) -> CandidateOutcome:
    """Return the outcome with the diagnosis that the known fingerprints give."""
    passed = {test.id for test in outcome.result.tests if test.status is Status.PASSED}
    found = diagnose(known, outcome.answers, passed)
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
    """Return whether kept and fresh fingerprints are equal."""
    if kept.texts != fresh.texts or len(kept.faults) != len(fresh.faults):
        return False
    pairs = zip(kept.faults, fresh.faults, strict=True)
    return _same_answers(kept.reference, fresh.reference) and all(
        a.name == b.name and _same_answers(a.deviations, b.deviations) for a, b in pairs
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
