"""Check that a problem's tests reject wrong values, and work without the expected values.

A worker does not know the expected values. Tests must give the same results there as at home.
"""

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
"""The tests run both at home and in a worker on about this many variants and mistakes."""

CLAIMS_GIVE = 0.2
"""The largest share of a problem's points that may be given for claims.

For example, if one of four checks in a test is a claim, a quarter of the test's points are given
for claims.
"""


@dataclass(frozen=True)
class Gates:
    """The findings about one problem's tests, and the share of claims.

    Attributes:
        findings: the findings, a sentence each.
        by_claims: the share of the problem's points that are given for claims. A claim is a check
            in the worker for which the grader compares no value. Student code that controls the
            worker can fake claims.
    """

    findings: list[str]
    by_claims: float


def gates_of(problem: Problem, root: Path) -> Gates:
    """Run a problem's tests at home and in a worker, compare the results, and try wrong values.

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
            for name, source in _some_candidates(course, problem).items()
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


def _some_candidates(course: Course, problem: Problem) -> dict[str, bytes]:
    """Return the code of some variants and mistakes.

    The keys are kinds and names, such as "mistake no_scale".
    """
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
    yield from _accepted_wrong_values(expected, message)
    for other in others:
        yield from _differences(test, in_worker, other, expected)


def _session(path: Path) -> Session:
    return Session(LocalFiles(lambda _: path), hidden=True, diagnose=False)


def _differences(
    test: CollectedTest, in_worker: CollectedTest, path: Path, expected: Expectation
) -> Iterator[str]:
    """Yield a finding if a test has different results in grading and at home.

    This happens if the test calls an oracle with values that the student's code returned. It also
    happens if the test compares a result with a tensor that the student's code has changed.
    """
    home = run_test(test, _session(path)).result
    graded = verdict(test, expected, answer(in_worker, _session(path), expected.inputs))
    if (home.status, home.message) != (graded.status, graded.message):
        yield (
            f"with {path.parent.name} the status is {home.status} at home, but {graded.status} in "
            f"grading: {home.message or graded.message}"
        )


def _accepted_wrong_values(expected: Expectation, message: bytes) -> Iterator[str]:
    """Yield a finding for each check that accepts a wrong value.

    Args:
        expected: the checks of a test.
        message: the record of the reference's values for these checks.
    """
    decoder = Decoder(message)
    _, record, *_ = decoder.content
    values = [decoder.decode(value) for _, value in record]
    for check, value in zip(expected.checks, values, strict=True):
        if check.is_claim:
            continue
        for damaged in _wrong_values(value):
            try:
                judge_value(check.judge, damaged, check.call)
            except Mismatch:
                continue
            yield f"{check.call}: a wrong value is accepted: {str(damaged)[:80]}"
            break


def _wrong_values(value: Any) -> Iterator[Any]:
    """Yield wrong versions of a value. In each version, one part of the value is changed."""
    match value:
        case Tensor() | numpy.ndarray():
            yield _changed_numbers(value)
        case bool():
            yield not value
        case int() | float():
            yield value * 2 + 1
        case str():
            yield f"{value}?"
        case dict():
            for name in value:
                yield from ({**value, name: damaged} for damaged in _wrong_values(value[name]))
        case list() | tuple():
            for place, part in enumerate(value):
                for damaged in _wrong_values(part):
                    yield type(value)([*value[:place], damaged, *value[place + 1 :]])


def _changed_numbers(values: Any) -> Any:
    """Return a tensor or array of the same dtype and shape in which all numbers are different."""
    numbers = numpy.nan_to_num(entries(values), posinf=0, neginf=0)
    if numbers.dtype.kind == "f":
        moved = numbers * 1.02 + 0.5
    else:
        moved = ~numbers if numbers.dtype == bool else numbers + 1
    if isinstance(values, numpy.ndarray):
        return moved.astype(values.dtype)
    return torch.from_numpy(numpy.asarray(moved)).to(values.dtype)
