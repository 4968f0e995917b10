"""Write the fingerprints of mistakes in an audit, and reuse those of an earlier audit.

The course contains more than a thousand mistakes, and a probe asks about a hundred questions.
Therefore `fingerprints.json` stores the answers of each mistake, and a hash of everything that the
answers depend on. The probe runs on the mistake again only if this hash has changed. For a variant
with the same answers as the reference, only the hash is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy
import torch

from grader.author.candidates import Candidate, CandidateKind
from grader.author.code_hash import code_hash, code_hashes, hash_of
from grader.author.running import CandidateOutcome
from grader.code.course_modules import modules_used
from grader.course import Problem
from grader.diagnose import probe as probing
from grader.diagnose.answers import same
from grader.diagnose.evidence import ranked
from grader.diagnose.fingerprints import (
    Fingerprints,
    KnownMistake,
    deviations,
    with_deviations,
)
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import Answers
from grader.errors import CourseError
from grader.result import DIAGNOSED, Status, TestResult


class KeptAnswers:
    """The answers in a problem's `fingerprints.json` that are still valid.

    Args:
        problem: the problem.
        reference: the current answers of the reference.
        will_rewrite: whether the audit will rewrite the file. If so, a damaged file is ignored.

    Raises:
        CourseError: the file is damaged and will not be rewritten.
    """

    def __init__(
        self, problem: Problem, reference: Mapping[str, Answers], *, will_rewrite: bool = False
    ) -> None:
        self._reference = reference
        self._questions = _questions_hash(problem)
        try:
            known = Fingerprints.load(problem.fingerprints)
        except CourseError:
            if not will_rewrite:
                raise
            known = Fingerprints()
        # Of a mistake's answers, the file stores only those that differ from the reference's.
        self._is_same = _same_answers(known.reference, reference)
        self._mistakes = {mistake.name: mistake for mistake in known.mistakes}
        self._right = known.right

    def answers(self, candidate: Candidate) -> dict[str, Answers] | None:
        """Return the valid answers of a mistake or variant, or None if the file contains none."""
        if candidate.kind is CandidateKind.VARIANT:
            known = KnownMistake("", {}, self._right.get(candidate.name, ""))
        else:
            known = self._mistakes.get(candidate.name, KnownMistake("", {}))
        if not self._is_same or known.answers_hash != self._hash(candidate, known.deviations):
            return None
        return with_deviations(self._reference, known.deviations)

    def caught_by(self, mistake: Candidate) -> str:
        """Return the id of the test that caught this mistake in an earlier audit, or ""."""
        known = self._mistakes.get(mistake.name)
        return "" if known is None else known.caught_by

    def known_mistake(self, outcome: CandidateOutcome) -> KnownMistake:
        """Return the fingerprint of a mistake.

        It contains the wrong answers, a hash of everything that they depend on, and the id of a
        test that catches the mistake.
        """
        wrong = deviations(outcome.answers, self._reference)
        answers_hash = self._hash(outcome.candidate, wrong)
        before = self.caught_by(outcome.candidate)
        return KnownMistake(
            outcome.candidate.name, wrong, answers_hash, _caught_by(outcome, before)
        )

    def right(self, variants: Iterable[CandidateOutcome]) -> dict[str, str]:
        """Return a hash of all that a variant's answers depend on, for each variant.

        The keys are the names of the variants. Omit variants with other answers than the reference.
        """
        return {
            outcome.candidate.name: self._hash(outcome.candidate, {})
            for outcome in variants
            if not deviations(outcome.answers, self._reference)
        }

    def _hash(self, candidate: Candidate, wrong: Mapping[str, Answers]) -> str:
        return hash_of(
            self._questions, code_hash(candidate.source), KnownMistake("", wrong).write()
        )


def _caught_by(outcome: CandidateOutcome, before: str) -> str:
    """Return the id of a visible test that caught a mistake, or "" if there is none.

    Prefer `before`, the test that caught the mistake in an earlier audit, then the fastest test.
    """
    seconds = {test.id: test.seconds for test in outcome.caught_by if not test.hidden}
    return before if before in seconds else min(seconds, key=seconds.__getitem__, default="")


def _questions_hash(problem: Problem) -> str:
    """Return a hash of a problem's probe, the code that runs it, and the version of torch or NumPy.

    Of the grader, only modules in `diagnose` are hashed. A change in another module can also affect
    the answers. Then the reference's answers change too, and no stored answer is used.
    """
    if not problem.probe_file.is_file():
        return ""
    probe = problem.probe_file.read_bytes()
    questions = [
        probe,
        *(path.read_bytes() for path in modules_used([probe], problem.folder.parent)),
    ]
    diagnose = Path(probing.__file__).parent
    used = modules_used([*questions, b"import grader.diagnose.probe"], diagnose.parents[1])
    asking = [path.read_bytes() for path in used if path.parent == diagnose]
    values = numpy if problem.manifest.values == "numpy" else torch
    version = str(values.__version__).partition("+")[0]
    return hash_of(
        code_hashes(questions + asking), version, *map(str, problem.entry.all_forbidden())
    )


def fingerprints_of(
    problem: Problem, outcomes: list[CandidateOutcome], kept: KeptAnswers
) -> Fingerprints:
    """Return the fingerprints of a problem: the answers of the reference and of all mistakes.

    Args:
        problem: the problem.
        outcomes: the outcomes of the reference, the variants and the mistakes.
        kept: the answers in the problem's current `fingerprints.json`.
    """
    if not problem.probe_file.is_file():
        return Fingerprints()
    reference = next(o.answers for o in outcomes if o.candidate.kind is CandidateKind.SOLUTION)
    mistakes = [o for o in outcomes if o.candidate.kind is CandidateKind.MISTAKE]
    catalogue = [kept.known_mistake(outcome) for outcome in mistakes]
    texts = {outcome.candidate.name: outcome.text for outcome in mistakes}
    right = kept.right(o for o in outcomes if o.candidate.kind is CandidateKind.VARIANT)
    return Fingerprints(reference, tuple(catalogue), texts, right)


def diagnosed(outcome: CandidateOutcome, known: Fingerprints) -> CandidateOutcome:
    """Diagnose an outcome with the fingerprints in `known`.

    The diagnosis is stored in the outcome, which is also returned.
    """
    passed = {test.id for test in outcome.result.tests if test.status is Status.PASSED}
    evidence = diagnose(known, outcome.answers, passed)
    names = tuple(name for diagnosis in evidence for name in diagnosis.names)
    tests = [_with_diagnosis(test, names) for test in outcome.result.tests]
    outcome.result.tests[:] = tests
    statuses = {test.status for test in tests}
    if statuses & DIAGNOSED and Status.TIMEOUT not in statuses:  # as in grading
        outcome.result.diagnoses = [diagnosis.sentence for diagnosis in ranked(evidence)]
    return outcome


def _with_diagnosis(test: TestResult, names: tuple[str, ...]) -> TestResult:
    return test if test.status is Status.PASSED else replace(test, diagnosis=names)


def same_fingerprints(kept: Fingerprints, fresh: Fingerprints) -> bool:
    """Return whether two sets of fingerprints are equal.

    Hashes and small differences between numbers are ignored.
    """
    if kept.texts != fresh.texts or len(kept.mistakes) != len(fresh.mistakes):
        return False
    pairs = zip(kept.mistakes, fresh.mistakes, strict=True)
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
