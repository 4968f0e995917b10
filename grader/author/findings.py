"""Derive the findings about a problem from the outcomes of its candidates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from grader.author.candidates import CandidateKind
from grader.author.fingerprint_writer import same_fingerprints
from grader.author.release import leaks
from grader.author.running import CandidateOutcome
from grader.author.weights import misplaced
from grader.course import MANIFEST, Problem
from grader.diagnose.fingerprints import Fingerprints, deviations
from grader.result import TestResult

_TYPOS = ("AttributeError", "NameError", "TypeError")
"""If a question of `probe.py` makes the reference raise one of these, the question has an error."""

VISIBLE_SHARE = 0.9
"""The minimum share of mistakes that the visible tests must catch."""


def findings(
    problem: Problem, outcomes: list[CandidateOutcome], kept: Fingerprints, fresh: Fingerprints
) -> Iterator[str]:
    """Yield a sentence for each finding about a problem.

    Args:
        problem: the problem.
        outcomes: the outcomes of all candidates of the problem.
        kept: the fingerprints in the problem's `fingerprints.json`.
        fresh: the fingerprints that this audit computed.
    """
    for outcome in outcomes:
        yield from (f"{problem.id}: {finding}" for finding in _about(outcome))
    solution = next(o for o in outcomes if o.candidate.kind is CandidateKind.SOLUTION)
    tests = solution.result.tests
    mistakes = [o for o in outcomes if o.candidate.kind is CandidateKind.MISTAKE]
    yield from (f"{problem.id}: {f}" for f in _about_points(mistakes, solution))
    yield from (f"{problem.id}: {f}" for f in _about_tests(tests, mistakes))
    yield from (f"{problem.id}: {f}" for f in _about_readme(problem, tests))
    yield from (f"{problem.id}: {f}" for f in _about_hints(problem))
    yield from (f"{problem.id}: {f}" for f in leaks(problem, solution.candidate.path))
    yield from (f"{problem.id}: {f}" for f in _about_fingerprints(outcomes, kept, fresh))


def _about(outcome: CandidateOutcome) -> Iterator[str]:
    what = f"{outcome.candidate.kind} {outcome.candidate.name}"
    result = outcome.result
    match outcome.candidate.kind:
        case CandidateKind.STUB:
            if result.points or not result.untouched:
                yield (
                    f"the stub must score 0 and leave every function unwritten; it scores "
                    f"{result.points:g}"
                )
        case CandidateKind.SOLUTION | CandidateKind.VARIANT:
            yield from (f"{what} fails {test.id}: {test.message}" for test in outcome.caught_by)
        case CandidateKind.MISTAKE:
            if not outcome.caught_by:
                yield f"{what} passes all tests"
            elif not outcome.named:
                yield f"{what} {_unreadable(outcome.candidate.source) or 'is caught but not named'}"
    for test in outcome.unsteady:
        yield f"{what} is unsteady: {test}"


def _unreadable(source: bytes) -> str:
    """Return a message about the syntax error in a file, or "" if there is none."""
    try:
        ast.parse(source)
    except SyntaxError as error:
        return f"can't be read as Python: line {error.lineno}: {error.msg}"
    return ""


def _about_points(mistakes: list[CandidateOutcome], solution: CandidateOutcome) -> Iterator[str]:
    for mistake in mistakes:
        sentence = misplaced(mistake.weight, mistake.result, solution.uses)
        if sentence and mistake.is_whole:  # incomplete runs have a confirmed weight
            yield f"mistake {mistake.candidate.name} {sentence}"


def _about_tests(tests: list[TestResult], mistakes: list[CandidateOutcome]) -> Iterator[str]:
    catching = {test.name for mistake in mistakes for test in mistake.caught_by}
    for name in dict.fromkeys(test.name for test in tests):
        if name not in catching:
            yield f"{name} catches no mistake"
    for test in tests:
        if test.title == test.id:
            yield f"{test.id} has no docstring, which students read as its title"
    visibly = sum(mistake.caught_visibly for mistake in mistakes)
    if mistakes and visibly < VISIBLE_SHARE * len(mistakes):
        yield f"the visible tests catch only {visibly} of {len(mistakes)} mistakes"


def _about_readme(problem: Problem, tests: list[TestResult]) -> Iterator[str]:
    """Yield a finding if the README, the tests and `course.toml` disagree.

    Also yield a finding for each rule in the README that names no visible test.
    """
    readme = (problem.folder / "README.md").read_text(encoding="utf-8")
    entry = problem.entry
    promised, points = entry.points, sum(test.max for test in tests)
    if abs(promised - points) > 1e-6:
        yield f"the tests add up to {points:g} points; {MANIFEST} says {promised:g}"
    head = f"Difficulty: {entry.difficulty} · Time: {_time(*entry.minutes)} · Points: {promised:g}"
    if not re.search(rf"{re.escape(head)}\b", readme):
        yield f"the README lacks this line, which follows from {MANIFEST}: {head}"
    rules = re.search(r"^## Rules.*?\n(.*?)^## ", readme, re.MULTILINE | re.DOTALL)
    bullets = re.split(r"^- ", rules[1], flags=re.MULTILINE)[1:] if rules else []
    visible = {test.name for test in tests if not test.hidden}
    if not bullets:
        yield "the README has no list of rules"
    for bullet in bullets:
        named = set(re.findall(r"`(test_\w+)`", bullet))
        if not named or not named <= visible:
            yield f"this rule names no visible test: {' '.join(bullet.split())[:80]}"


def _about_hints(problem: Problem) -> Iterator[str]:
    """Yield a finding for each hint about a function or class that the stub does not define."""
    page = problem.folder / "hints.md"
    tasks = re.findall(r"^## (.+)$", page.read_text("utf-8"), re.M) if page.is_file() else []
    stub = problem.original.read_text(encoding="utf-8")
    for task in tasks:
        name = re.escape(task.rpartition(".")[2])
        if not task.startswith("The ") and not re.search(rf"\b(def|class) {name}\b", stub):
            yield f"a hint is for '{task}', which the stub does not define"


def _time(least: int, most: int) -> str:
    """Return a range of minutes in the form for a README, such as "20 to 40 minutes"."""
    if least == most:
        return f"{least} minutes" if least < 120 else f"{least // 60} hours"
    return f"{least} to {most} minutes" if most <= 120 else f"{least // 60} to {most // 60} hours"


def _about_fingerprints(
    outcomes: list[CandidateOutcome], kept: Fingerprints, fresh: Fingerprints
) -> Iterator[str]:
    if not same_fingerprints(kept, fresh):
        yield "fingerprints.json is not up to date; write it with --write-fingerprints"
    for part, answers in fresh.reference.items():
        for question, answer in {**answers.main, **answers.edges}.items():
            if answer.instead in _TYPOS:
                yield f"the reference raises {answer.instead} in '{part}: {question}' of probe.py"
    for outcome in outcomes:
        if outcome.candidate.kind is CandidateKind.VARIANT:
            for part, wrong in deviations(outcome.answers, fresh.reference).items():
                for question in (*wrong.main, *wrong.edges):
                    name = outcome.candidate.name
                    where = f"'{part}: {question}' of probe.py"
                    yield f"variant {name} and the reference differ in {where}"
