"""No mark hangs on what was graded before, though answers that passed are known from there."""

import ast
import random
from collections.abc import Iterator

import pytest

from grader.author.candidates import Kind, candidates
from grader.course import own_course
from grader.grading.settings import Settings
from grader.grading.submission import Grader
from grader.intake.submissions import StudentFile, Submission
from grader.isolation.precedents import Asked
from grader.isolation.siblings import Siblings
from grader.testing import runner
from grader.testing.edits import mistakes_of
from tests.lent import lent_boundary

COURSE = own_course()
PROBLEMS, SAMPLE = 2, 4
"""How many problems take part, and how many files of each; the audit's `--parity` takes all."""

OTHER_CHANCE = ("python_random", "sample_numpy_global")
"""Mistakes that draw what no seed of torch's settles."""


@pytest.fixture(scope="module")
def graders(origin: Siblings) -> Iterator[tuple[Grader, Grader]]:
    """One that keeps what passed, and one that runs all tests."""
    with lent_boundary(origin) as keeping, lent_boundary(origin) as forgetting:
        forgetting._precedents = None
        yield tuple(Grader(COURSE, Settings(), boundary) for boundary in (keeping, forgetting))


def told(grader, problem, source):
    """Return all that the student and the instructor are told, but for times and names."""
    (result,) = grader.grade(Submission("s", {problem.id: StudentFile(source)})).problems
    tests = [(test.id, test.status, test.message) for test in result.tests]
    return result.points, tests, result.notes


@pytest.mark.slow
def test_order_makes_no_difference(graders, monkeypatch):
    """Each file is graded after those before it, in an order of chance; a repeated one, too."""
    # Mistakes are named from what tests found, and from questions that have no precedents.
    monkeypatch.setattr("grader.testing.suite.name_mistakes", lambda session: None)
    seed = random.randrange(1 << 32)
    chance, half, chosen = random.Random(seed), SAMPLE // 2, []
    for problem in chance.sample(COURSE.problems(), k=PROBLEMS):
        found = [each for each in candidates(COURSE, [problem]) if each.name not in OTHER_CHANCE]
        right = [each for each in found if each.kind in (Kind.SOLUTION, Kind.VARIANT)]
        wrong = [each for each in found if each.kind in (Kind.STUB, Kind.MISTAKE)]
        files = chance.sample(right, k=half) + chance.sample(wrong, k=half)
        chosen += [*files, chance.choice(files)]
    chance.shuffle(chosen)
    for each in chosen:
        keeping, forgetting = (told(grader, each.problem, each.source) for grader in graders)
        assert keeping == forgetting, f"{each.name} of seed {seed}"


def test_tests_read_no_clock_of_their_own():
    """What a test asks must hang on answers alone, or on `grader.testing.clock`, which is known."""
    files = [*COURSE.root.glob("problems/*.py"), *COURSE.root.glob("problems/*/*.py")]
    nodes = [
        node
        for path in files
        if path.name != "explore.py"
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    imported = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {"torch", "grader.testing.clock"} <= imported
    assert imported.isdisjoint({"time", "datetime", "timeit", "resource", "random"})


@pytest.mark.slow
def test_a_test_that_does_not_ask_what_it_asked_runs_anew(origin, monkeypatch):
    """That would be a fault of the grader's or the course's; no student loses a point by it."""
    problem = COURSE.problems()[0]
    wrong = mistakes_of(COURSE, problem)[0].source.encode()
    solution = COURSE.solution(problem).read_bytes()
    with lent_boundary(origin) as boundary:
        grader = Grader(COURSE.only_with([problem]), Settings(), boundary)
        expected = told(grader, problem, wrong)
        boundary.forget_precedents()
        right = told(grader, problem, solution)
        monkeypatch.setattr(Asked, "is_same", lambda *_: False)
        assert told(grader, problem, wrong) == expected != right
        assert told(grader, problem, solution) == right


@pytest.mark.slow
def test_a_slow_file_is_not_asked_what_a_quick_one_was(graders):
    """Loops over pairs of positions are right, and a long sequence would take them minutes."""
    problem = next(each for each in COURSE.problems() if each.id.startswith("05"))
    slow = COURSE.solution(problem).parent / "variants/entry_by_entry.py"
    for path in (COURSE.solution(problem), slow):
        _, tests, *_ = told(graders[0], problem, path.read_bytes())
        assert {status for _, status, _ in tests} == {"passed"}


def test_tests_that_a_file_is_known_to_pass_do_not_run(origin, monkeypatch):
    """But for those that ask so much that it isn't kept."""
    problem, calls = COURSE.problems()[0], []
    call = runner._call

    def counting(test, *args):
        calls.append(test.id)
        return call(test, *args)

    monkeypatch.setattr(runner, "_call", counting)
    solution, course = COURSE.solution(problem).read_bytes(), COURSE.only_with([problem])
    with lent_boundary(origin) as boundary:
        grader = Grader(course, Settings(), boundary)
        first = told(grader, problem, solution)
        assert len(calls) == len(first[1])
        calls.clear()
        assert told(grader, problem, solution) == first
    assert len(calls) <= 2 < len(first[1]) / 10
