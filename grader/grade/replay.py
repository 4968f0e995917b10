"""Run a test of one submission again, and show the instructor everything about it."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.course import Course, Problem
from grader.errors import SubmissionError, UsageError
from grader.grade.previous import (
    RESULTS,
    Previous,
    load_previous,
    named_as_before,
    read_result,
    result_path,
)
from grader.grade.processes import call_apart
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.intake.identity import only_these
from grader.intake.submissions import find_submissions
from grader.result import ProblemResult, Provenance, TestResult
from grader.text import plain


@dataclass
class Replay:
    """The result of replaying a test.

    Attributes:
        submission: the name of the submission.
        problem: the id of the problem.
        source: the test's source.
        rerun: the outcome of the replay.
        graded: maps test ids to the results of the graded run.
        notes: remarks on differences from the graded run.
    """

    submission: str
    problem: str
    source: str
    rerun: Rerun
    graded: dict[str, TestResult]
    notes: list[str] = field(default_factory=list)


@dataclass
class Rerun:
    """The outcome of a replayed test.

    Attributes:
        tests: the result of the test, or of each of its parametrized cases.
        tracebacks: maps the id of each failed test to its traceback.
        printed: the text that the student's code printed.
        checks: maps test ids to texts with the values of the student's code and the reference.
    """

    tests: list[TestResult]
    tracebacks: dict[str, str]
    printed: str
    checks: dict[str, str] = field(default_factory=dict)


def replay(path: Path, test: str, course: Course, settings: Settings, out: Path) -> Replay:
    """Run a test again, alone, with the seed and the level of isolation of the graded run.

    Args:
        path: the path of a submission, or the path of a class followed by a submission's name.
        test: the name of a test. It can begin with a problem and `/`, and end with a parametrized
            case in brackets.
        course: the course with the test.
        settings: the limits. The seed and the level of isolation in it are used only if there is no
            graded result.
        out: the folder of reports.

    Raises:
        SubmissionError: the path contains no such submission.
        UsageError: the course has no such test.
    """
    problem, name = find_test(test, course)
    previous = load_previous(out / RESULTS)
    submission = find_one(path, course, problem, previous)
    graded, notes = _graded(submission, problem, previous, out)
    provenance = graded.provenance if graded else Provenance()
    settings = replace(
        settings,
        seed=provenance.get("seed", settings.seed),
        isolation=provenance.get("isolation", settings.isolation),
    )
    if graded is None:
        notes = [f"{note} The seed is {settings.seed}." for note in notes]
    rerun: Rerun = call_apart(
        "grader.grade.replay_run:run_again",
        settings.isolation,
        *(submission.only([problem.id]), problem, name, course, settings),
    )
    return Replay(
        submission.name,
        problem.id,
        _source(problem, name.partition("[")[0]),
        rerun,
        {each.id: each for each in graded.tests} if graded else {},
        notes,
    )


def _graded(
    submission: Submission, problem: Problem, previous: Previous, out: Path
) -> tuple[ProblemResult | None, list[str]]:
    """Return the result of the graded run or None, and remarks on this result."""
    (submission,), _ = named_as_before([submission], previous)
    path = result_path(out / RESULTS, submission.name)
    if not path.exists():
        return None, [f"There is no result in {out}."]
    try:
        result = read_result(path)
    except ValueError as error:
        return None, [f"The result in {path} can't be used: {error}."]
    graded = next((each for each in result.problems if each.id == problem.id), None)
    if graded is None:
        return None, [f"The result in {path} does not contain {problem.id}."]
    changed = graded.sha256 != submission.files[problem.id].sha256
    return graded, ["The file has changed since it was graded."] if changed else []


# Arguments


def find_one(
    path: Path, course: Course, only: Problem | None = None, previous: Previous | None = None
) -> Submission:
    """Return the submission to which `path` refers.

    Args:
        path: the path of a submission, or the path of a class followed by a submission's name.
        course: the course.
        only: the only problem to look for; None for all problems.
        previous: the results of previous runs. The names in these results can be used in `path`.

    Raises:
        SubmissionError: there is no such submission, or more than one.
    """
    if path.exists():
        submissions = find_submissions(path, course, only)
        if len(submissions) == 1:
            return submissions[0]
        raise SubmissionError(
            f"{path} contains {len(submissions)} submissions; add a name: {path}/NAME"
        )
    results = previous.results.values() if previous else ()
    names = {result.who: result.full_name for result in results}
    known = [
        replace(each, full_name=names.get(each.identity) or each.full_name)
        for each in find_submissions(path.parent, course, only)
    ]
    try:
        return only_these(known, [path.name])[0]
    except UsageError as error:
        raise SubmissionError(f"In {path.parent}: {error}") from None


def find_test(test: str, course: Course) -> tuple[Problem, str]:
    """Return the problem of a test, and the test's name without the problem.

    Raises:
        UsageError: no problem or several problems have a test of this name.
    """
    place, _, name = test.rpartition("/") if "/" in test.partition("[")[0] else ("", "", test)
    problems = course.select([place] if place else [])
    function = name.partition("[")[0]
    matches = [problem for problem in problems if _source(problem, function)]
    if len(matches) == 1:
        return matches[0], name
    if matches:
        where = " or ".join(f"{problem.id}/{name}" for problem in matches)
        raise UsageError(f"'{name}' is a test of several problems; use {where}")
    known = sorted({name for problem in problems for name in _functions(problem)})
    near = difflib.get_close_matches(function, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    raise UsageError(f"there is no test '{function}'; {hint}")


def _functions(problem: Problem) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(problem.test_file.read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in tests if node.name.startswith("test_")}


def _source(problem: Problem, function: str) -> str:
    node = _functions(problem).get(function)
    if node is None:
        return ""
    first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
    lines = problem.test_file.read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[first - 1 : node.end_lineno])


# Output


def report(replayed: Replay) -> str:
    """Return the whole replay as text for a terminal."""
    lines = [f"{replayed.submission}, {replayed.problem}", *replayed.notes, "", replayed.source]
    for test in replayed.rerun.tests:
        lines += ["", *_case(test, replayed)]
    printed = replayed.rerun.printed.rstrip() or "Nothing."
    lines += ["", "Output of the student's code:", *_indented(printed)]
    return plain("\n".join(lines))


def _case(test: TestResult, replayed: Replay) -> Iterator[str]:
    yield f"{test.id}: {test.status}"
    graded = replayed.graded.get(test.id)
    if graded is not None and graded.status is not test.status:
        yield f"  In the graded run, where other tests ran before it: {graded.status}."
    yield from _indented(test.message)
    for shown in (replayed.rerun.tracebacks, replayed.rerun.checks):
        if shown.get(test.id):
            yield from ["", *_indented(shown[test.id])]


def _indented(text: str) -> Sequence[str]:
    return [f"  {line}" for line in text.splitlines()]
