"""`grader find`: a file with one mistake for each student, the key to it, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from grader.boundary.starting import TemplateProcess
from grader.cli import app
from grader.course import own_course
from grader.grade.bug_hunt import Exercise, exercise_for, exercises, judge_found, place_of
from grader.grade.settings import Settings
from grader.grade.submission import Grader
from tests.lent import lent_boundary

COURSE = own_course()
(SOFTMAX,) = COURSE.select(["01"])


@pytest.fixture(scope="module")
def known() -> list[Exercise]:
    return exercises(COURSE, SOFTMAX)


FIRST, *OTHERS = COURSE.problems()


@pytest.mark.parametrize(
    "problem",
    [FIRST, *(pytest.param(problem, marks=pytest.mark.slow) for problem in OTHERS)],
    ids=lambda problem: problem.id,
)
def test_there_are_exercises_of_every_problem(problem):
    found = exercises(COURSE, problem)
    assert len(found) > 15
    for exercise in found:
        lines = exercise.source.splitlines()
        assert 1 <= len(exercise.lines) <= 3
        assert all(2 < number <= len(lines) + 1 for number in exercise.lines)
        assert exercise.text not in exercise.source


def test_a_name_and_a_word_deal_the_same_exercise_again(known):
    names = [f"student {number}" for number in range(40)]
    dealt = [exercise_for(name, known, SOFTMAX, "2026") for name in names]
    assert dealt == [exercise_for(name, known, SOFTMAX, "2026") for name in names]
    assert len({exercise.source for exercise in dealt}) > 10
    assert dealt != [exercise_for(name, known, SOFTMAX, "2027") for name in names]


@pytest.mark.slow
def test_exercises_are_written_once_and_the_key_is_told(tmp_path):
    def run(*more: object) -> str:
        words = ["find", "01", "--name", "Ada", "--name", "李 雷", *map(str, more)]
        return CliRunner().invoke(app, words).output

    assert "2 exercises" in run("--out", tmp_path)
    text = place_of(tmp_path, "李 雷", SOFTMAX).read_text(encoding="utf-8")
    assert "there already" in run("--out", tmp_path)
    assert place_of(tmp_path, "李 雷", SOFTMAX).read_text(encoding="utf-8") == text
    assert "李 雷: line " in run("--key")
    assert "Say one of" in run()


@pytest.fixture(scope="module")
def behind_the_boundary(origin: TemplateProcess) -> Iterator[Grader]:
    with lent_boundary(origin) as boundary:
        yield Grader(COURSE.only_with([SOFTMAX]), Settings(), boundary)


@pytest.mark.slow
def test_odd_names_are_people_too(tmp_path):
    def run(*names: str) -> str:
        given = [text for name in names for text in ("--name", name)]
        return CliRunner().invoke(app, ["find", "01", *given, "--out", str(tmp_path)]).output

    assert "A name is empty" in run("ada", "  ")
    assert not [*tmp_path.iterdir()]
    assert "'ada' is there twice" in run("ada", "bob", " ada")
    assert not [*tmp_path.iterdir()]
    assert "4 exercises" in run("../x", "ada", "محمد", "x" * 400)
    assert len([*tmp_path.rglob("problem.py")]) == 4
    assert "there already" in run("bob", "ada")
    assert not (tmp_path / "bob").exists()


MEND = ("k.T", "k.transpose(-2, -1)")


def answers(exercise: Exercise) -> dict[str, tuple[str, bool, bool]]:
    """What can come back: the file, whether the line was found, whether it was mended."""
    number = exercise.lines[0]
    named = exercise.source.replace("line ?", f"line {number}")
    other = exercise.source.replace("line ?", f"line {number + 4}")
    mended = named.replace(*MEND)
    solution = COURSE.solution(SOFTMAX).read_text(encoding="utf-8")
    return {
        "found and mended": (mended, True, True),
        "as it was": (exercise.source, False, False),
        "named only": (named, False, False),
        "mended, another line named": (other.replace(*MEND), False, True),
        "mended, no line named": (exercise.source.replace(*MEND), False, True),
        "another file": (f"# line {number}\n{solution}", False, False),
        "nothing": ("", False, False),
        "a number without end": (f"# line {'9' * 5000}\n", False, False),
        "lines without end": (mended + "x = [1,  2, 3]\n" * 30000, False, False),
        "no Python": ("line 3 )(", False, False),
    }


@pytest.mark.slow
def test_an_answer_is_judged_by_running_it(known, behind_the_boundary):
    exercise = next(e for e in known if MEND[0] in e.source and len(e.lines) == 1)
    for name, (answer, found, mended) in answers(exercise).items():
        verdict = judge_found(exercise, answer.encode(), SOFTMAX, behind_the_boundary)
        assert (verdict.found, verdict.mended) == (found, mended), (name, verdict)
