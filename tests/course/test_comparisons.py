"""`grader compare` shows two styles of the course's files, their costs, and two answers."""

from __future__ import annotations

import re

import pytest

from grader.code.loading import load_module
from grader.course import Problem, own_course
from grader.student.solved.comparison import Script, comparison_of, module_of
from grader.student.solved.right_files import answer, cost_of

COURSE = own_course()
PROBLEMS = COURSE.problems()
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=[p.id for p in PROBLEMS])


@each_problem
def test_two_styles_are_shown_each_with_a_sentence(problem: Problem) -> None:
    found = comparison_of(COURSE, problem)
    assert [each.name for each in found.files][0] == ""
    assert len(found.files) == 3
    for style in found.files[1:]:
        assert style.when.startswith("Choose it ")
        assert style.when.endswith(".")


@pytest.mark.slow
@each_problem
def test_the_answers_are_the_same_for_every_right_file(problem: Problem) -> None:
    script = Script.load(comparison_of(COURSE, problem).script, COURSE)
    answers: dict[str, list[str]] = {}
    for name, path in COURSE.right_files(problem).items():
        module = load_module(path, f"problem_of_{path.stem}")
        answers[name] = [answer(work_out) for _, work_out in script.questions(module)]
    of_reference = answers["reference"]
    assert [name for name, found in answers.items() if found != of_reference] == []
    assert len(of_reference) == 2


def test_an_answer_with_numbers_on_both_sides_has_the_same() -> None:
    (problem,) = COURSE.select(["02"])
    script = Script.load(comparison_of(COURSE, problem).script, COURSE)
    module = load_module(COURSE.solution(problem), "problem_of_reference")
    row, mean = re.findall(r"\[.*?\]", answer(script.questions(module)[1][1]))
    assert row == mean


@pytest.mark.slow
@each_problem
def test_every_file_that_is_shown_has_its_costs(problem: Problem) -> None:
    found = comparison_of(COURSE, problem)
    script = Script.load(found.script, COURSE)
    costs = [cost_of(module_of(file.source, "problem_shown"), script) for file in found.files]
    assert all(cost is not None and cost.largest > 0 for cost in costs)
    assert all(cost is not None and cost.elements > 1000 for cost in costs)
