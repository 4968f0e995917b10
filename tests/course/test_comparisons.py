"""`grader compare` shows two correct files in different styles, their costs, and answers to two
questions.
"""

from __future__ import annotations

import math
import re

import pytest

from grader.code.course_modules import modules_of_course
from grader.code.loading import load_module
from grader.course import Problem, own_course
from grader.diagnose.numbers import numbers
from grader.student.solved.comparison import Script, comparison_of, module_of
from grader.student.solved.right_files import answer, cost_of

COURSE = own_course()
PROBLEMS = COURSE.problems()
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=[p.id for p in PROBLEMS])


@each_problem
def test_two_styles_are_shown_each_with_a_sentence(problem: Problem) -> None:
    comparison = comparison_of(COURSE, problem)
    assert [each.name for each in comparison.files][0] == ""
    assert len(comparison.files) == 3
    for style in comparison.files[1:]:
        assert style.when.startswith("Choose it ")
        assert style.when.endswith(".")


def list_text(numbers: list[float], digits: int = 3) -> str:
    return f"[{', '.join(f'{number:.{digits}f}' for number in numbers)}"


def parts_of_answers() -> dict[str, tuple[list[str], list[str]]]:
    """Map each problem number to the texts that its two answers must contain.

    The numbers in the texts are computed by hand.
    """
    with modules_of_course(COURSE.root):
        from shared.oracles.attention import OUTPUT, SCORES, WEIGHTS, multi_head_by_hand
        from shared.oracles.attention import softmax_by_hand as softmax
        from shared.probe_weights import attention_weights
        from shared.worked_example import V

        x, weights = numbers(1, 6, 8), attention_weights(8)
        masked, free = (multi_head_by_hand(x, weights, 2, causal)[0, 0] for causal in (True, False))
        by_heads = [multi_head_by_hand(x, weights, n)[0, 0, 0].item() for n in (1, 2, 4)]
    row = WEIGHTS[1].tolist()
    doubled = [weight / (1 + row[2]) for weight in [*row, row[2]]]
    column = [*V[:, 0].tolist(), V[2, 0].item()]
    first = sum(weight * value for weight, value in zip(doubled, column, strict=True))
    token = [(n - 3) / math.sqrt(21) for n in (2, -4, 6, 8)]
    return {
        "01": (
            [list_text([1 / (1 + math.e), math.e / (1 + math.e)], 4)],
            ["[0.0000, 0.0000, 1.0000]", list_text(softmax([1.0, 2.0, 3.0]), 4)],
        ),
        "02": (["(largest difference 0.000000)"], []),
        "03": (
            [list_text(softmax(SCORES[1].tolist()))],
            [list_text(doubled), f"begins with {first:.3f}"],
        ),
        "04": (
            [list_text(OUTPUT[0, :3].tolist()), list_text(WEIGHTS[0].tolist())],
            ["Row 5 only."],
        ),
        "05": (
            [
                f"begins with {list_text(free[:3].tolist())}, ...] instead of",
                f"instead of {list_text(masked[:3].tolist())}, ...]:",
                "Row 5 stays",
            ],
            [f"{3 * 8 * 8 + 3 * 8 + 8 * 8 + 8} parameters", list_text(by_heads)[1:]],
        ),
        "06": ([f"{list_text(token)}], where it was {list_text(token)}]"], ["difference 0.0000"]),
        "07": ([f"{math.log(65):.1f}, and ln 65 is {math.log(65):.2f}"], ["without, by 0.000"]),
        "08": (
            ["2, 3, 4."],
            ["keeps 2 tokens with the temperature first, 2 with", "keeps 4 tokens"],
        ),
        "09": (
            [
                f"{2 * 12 * 768 * 1024 * 2 / 1e6:.1f} MB",
                f"{2 * 12 * 768 * 1024 * 64 / 1e6:,.0f} MB",
            ],
            ["the whole cache by 0.000"],
        ),
        "10": (["largest entry is 0.0000"], ["By 0.1000 and by 0.1000."]),
    }


@pytest.fixture(scope="module")
def expected() -> dict[str, tuple[list[str], list[str]]]:
    return parts_of_answers()


@pytest.mark.slow
@each_problem
def test_the_answers_are_correct_for_every_correct_file(
    problem: Problem, expected: dict[str, tuple[list[str], list[str]]]
) -> None:
    script = Script.load(comparison_of(COURSE, problem).script, COURSE)
    answers: dict[str, list[str]] = {}
    for name, path in COURSE.right_files(problem).items():
        module = load_module(path, f"problem_of_{path.stem}")
        answers[name] = [answer(work_out) for _, work_out in script.questions(module)]
    of_reference = answers["reference"]
    assert [name for name, answer in answers.items() if answer != of_reference] == []
    assert len(of_reference) == 2
    for text, parts in zip(of_reference, expected[problem.id[:2]], strict=True):
        for part in parts:
            assert part in text


def test_both_rows_in_the_answer_of_02_are_equal(
    expected: dict[str, tuple[list[str], list[str]]],
) -> None:
    (problem,) = COURSE.select(["02"])
    script = Script.load(comparison_of(COURSE, problem).script, COURSE)
    module = load_module(COURSE.solution(problem), "problem_of_reference")
    row, mean = re.findall(r"\[.*?\]", answer(script.questions(module)[1][1]))
    assert row == mean


@pytest.mark.slow
@each_problem
def test_every_shown_file_has_costs(problem: Problem) -> None:
    comparison = comparison_of(COURSE, problem)
    script = Script.load(comparison.script, COURSE)
    costs = [cost_of(module_of(file.source, "problem_shown"), script) for file in comparison.files]
    assert all(cost is not None and cost.largest > 0 for cost in costs)
    assert all(cost is not None and cost.elements > 1000 for cost in costs)
