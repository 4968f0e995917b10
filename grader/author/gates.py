"""Check that a problem's tests send no expected value to a worker, and reject wrong values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import torch
from torch import Tensor

from grader.author.candidates import CandidateKind, candidates
from grader.code.quiet import quiet
from grader.code.tensors import entries
from grader.course import SUBMISSION_FILE, Course, Problem
from grader.errors import InternalError, Mismatch
from grader.result import Status
from grader.run.checks import judge_value
from grader.run.collecting import CollectedTest
from grader.run.encoding import Decoder
from grader.run.judging import Expectation, answer, expect, verdict
from grader.run.local_files import LocalFiles
from grader.run.runner import load_late_parts, run_test
from grader.run.session import Session
from grader.run.suite import Suite
from grader.run.unknown import UNKNOWN, without_oracles

_VARIANT = CandidateKind.VARIANT

_OTHERS = 3
"""The number of variants and of mistakes for which grading is compared with a run at home."""

CLAIMS_GIVE = 0.2
"""The largest share of a problem's points that may be given for claims.

All checks of a test have the same weight. If one of four checks is a claim, the test gives a
quarter of its points for claims.
"""


@dataclass(frozen=True)
class Gates:
    """The results of the checks of one problem's tests.

    Attributes:
        findings: the findings, a sentence each.
        by_claims: the share of the problem's points that are given for claims. No value is compared
            for a claim, so code that controls its worker can get these points.
    """

    findings: list[str]
    by_claims: float


def gates_of(problem: Problem, root: Path) -> Gates:
    """Run a problem's tests at home, in a worker and with damaged values, and return the results.

    Args:
        problem: the problem with the tests.
        root: the course's folder.
    """
    course = Course(root)
    tests = Suite([problem], root).tests
    with without_oracles():
        in_worker = Suite([problem], root).tests
    in_worker[0].tests.__dict__["solution"] = UNKNOWN
    load_late_parts()
    torch.set_num_threads(1)  # as in grading; a second thread slows down small tensors
    with quiet(), TemporaryDirectory() as folder:
        others = [
            _written(Path(folder, name), source)
            for name, source in _others(course, problem).items()
        ]
        findings = [
            f"{problem.id}: {test.id}: {finding}"
            for test, other in zip(tests, in_worker, strict=True)
            for finding in _about(test, other, course.solution(problem), others)
        ]
        share = _by_claims(tests, course.solution(problem))
    if share > CLAIMS_GIVE:
        findings.append(f"{problem.id}: checks without a compared value give {share:.0%} of points")
    return Gates(findings, share)


def _by_claims(tests: Iterable[CollectedTest], reference: Path) -> float:
    by_claims = total = 0.0
    for test in tests:
        with suppress(InternalError):  # a finding
            expectation = expect(test, _session(reference))
            values = sum(not check.is_claim for check in expectation.checks)
            by_claims += test.points * expectation.claims / (expectation.claims + values)
            total += test.points
    return by_claims / (total or 1)


def _others(course: Course, problem: Problem) -> dict[str, bytes]:
    """Return the code of some variants and then some mistakes, by kind and name."""
    sources = {
        f"{each.kind} {each.name}": each.source
        for each in sorted(candidates(course, [problem]), key=lambda each: each.kind != _VARIANT)
        if each.kind in (_VARIANT, CandidateKind.MISTAKE)
    }
    step = max(1, len(sources) // _OTHERS)
    return {name: sources[name] for name in [*sources][::step]}


def _written(folder: Path, source: bytes) -> Path:
    folder.mkdir()
    path = folder / SUBMISSION_FILE
    path.write_bytes(source)
    return path


def _about(
    test: CollectedTest, in_worker: CollectedTest, reference: Path, others: Iterable[Path]
) -> Iterator[str]:
    try:
        expected = expect(test, _session(reference))
    except InternalError as error:
        yield str(error)
        return
    message = answer(in_worker, _session(reference), expected.inputs)
    outcome = verdict(test, expected, message)
    if outcome.status is not Status.PASSED:
        yield f"in a worker the result of the reference is {outcome.status}: {outcome.message}"
        return
    yield from _undamaged(expected, message)
    for other in others:
        yield from _differs(test, in_worker, other, expected)


def _session(path: Path) -> Session:
    return Session(LocalFiles(lambda _: path), hidden=True, diagnose=False)


def _differs(
    test: CollectedTest, in_worker: CollectedTest, path: Path, expected: Expectation
) -> Iterator[str]:
    """Yield a finding if a test has different results in grading and at home.

    This happens if the test calls an oracle with values of the student. It also happens if the
    test compares a result with a tensor that the student's code has changed.
    """
    home = run_test(test, _session(path)).result
    graded = verdict(test, expected, answer(in_worker, _session(path), expected.inputs))
    if (home.status, home.message) != (graded.status, graded.message):
        yield (
            f"with {path.parent.name} it is {home.status} at home, but {graded.status} in grading: "
            f"{home.message or graded.message}"
        )


def _undamaged(expected: Expectation, message: bytes) -> Iterator[str]:
    """Yield a finding for each recorded value of the reference that a test also accepts when
    changed.
    """
    decoder = Decoder(message)
    _, record, *_ = decoder.content
    values = [decoder.decode(value) for _, value in record]
    for check, value in zip(expected.checks, values, strict=True):
        if check.is_claim:
            continue
        for damaged in _damaged(value):
            try:
                judge_value(check.judge, damaged, check.call)
            except Mismatch:
                continue
            yield f"{check.call}: a wrong value is accepted: {str(damaged)[:80]}"
            break


def _damaged(value: Any) -> Iterator[Any]:
    """Yield copies of a value. In each copy a different part is changed."""
    match value:
        case Tensor() | numpy.ndarray():
            yield _moved(value)
        case bool():
            yield not value
        case int() | float():
            yield value * 2 + 1
        case str():
            yield f"{value}?"
        case dict():
            for name in value:
                yield from ({**value, name: damaged} for damaged in _damaged(value[name]))
        case list() | tuple():
            for place, part in enumerate(value):
                for damaged in _damaged(part):
                    yield type(value)([*value[:place], damaged, *value[place + 1 :]])


def _moved(values: Any) -> Any:
    """Return an array of the same dtype and shape with different numbers."""
    numbers = numpy.nan_to_num(entries(values), posinf=0, neginf=0)
    if numbers.dtype.kind == "f":
        moved = numbers * 1.02 + 0.5
    else:
        moved = ~numbers if numbers.dtype == bool else numbers + 1
    if isinstance(values, numpy.ndarray):
        return moved.astype(values.dtype)
    return torch.from_numpy(numpy.asarray(moved)).to(values.dtype)
