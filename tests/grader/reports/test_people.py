"""Pages show real names, a common message only once, and the reasons for changed marks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.code.loading import judge_load, load_module
from grader.reports.class_table import class_table, remarks
from grader.reports.dashboard import dashboard
from grader.reports.display_names import by_name, people
from grader.reports.feedback import feedback_page
from grader.reports.gradescope_json import results_json
from grader.reports.remarks import MANY, class_remarks
from grader.reports.wording import adjustment_line
from grader.result import Adjustment, Policy, ProblemResult, Status, SubmissionResult, TestResult
from tests.results import doubles, result_of

NAMES = ["王小明", "Ólafur Þór", "مريم حداد", "Ελένη", "Jürgen", "भारती", "김서연", "Ян"]


def graded(name: str, full_name: str = "", points: float = 4) -> SubmissionResult:
    student_result = result_of(name, identity=f"x:{name}", full_name=full_name)
    if points != 4:
        student_result.problems[0].adjustments = [Adjustment(points - 4, "Late by 1 day.")]
    return student_result


def missing(name: str, reason: str) -> SubmissionResult:
    student_result = graded(name)
    test = doubles(Status.MISSING, reason)
    student_result.problems.append(ProblemResult("05-heads", "", [test], [reason]))
    return student_result


def table_text(results: list[SubmissionResult]) -> str:
    return "\n".join(str(cell) for cell in class_table(results, ["01-doubling"]).columns[0].cells)


def test_every_report_shows_the_real_name() -> None:
    results = [graded(f"__-{n}", name) for n, name in enumerate(NAMES)]
    page, table = dashboard(results, ["01-doubling"]), table_text(results)
    for n, name in enumerate(NAMES):
        for view in (page, table, feedback_page(results[n], Policy.TITLES)):
            assert name in view
        assert f"instructor/__-{n}.html" in page


def test_students_of_one_name_are_distinguished() -> None:
    both = [graded("wei-chen-1", "Wei Chen"), graded("wei-chen-2", "Wei  Chen"), graded("eve")]
    assert [str(person) for person in people(both).values()] == [
        "Wei Chen (6a6c)",
        "Wei Chen (c487)",
        "eve",
    ]
    alike = [graded("a", "Zo\u00eb"), graded("b", "Zoe\u0308"), graded("c", " \t ")]
    assert [person.name[-6:] for person in people(alike).values()] == ["(e0f5)", "(10b0)", "c"]


def test_a_class_is_sorted_by_names() -> None:
    results = [graded("a", "Zoe"), graded("z", "ada"), graded("m", "Bob")]
    assert [result.shown_name for result in by_name(results)] == ["ada", "Bob", "Zoe"]


# Messages for many students


def test_a_message_for_many_students_is_shown_once() -> None:
    reason = "There is no folder 05-heads in the submission."
    results = [missing(f"s{n}", reason) for n in range(MANY)]
    assert remarks(results) == [f"{MANY} of {MANY} have no 05: {reason}"]
    page = dashboard(results, ["01-doubling", "05-heads"])
    assert page.count(reason) == 1


def test_a_shared_message_lists_its_students() -> None:
    reason = "There is no folder 05-heads in the submission."
    results = [missing(f"s{n}", reason) for n in range(MANY + 2)]
    results += [graded("zoe", "Zoe Z"), missing("eve", "There is no problem.py in 05-heads.")]
    output = remarks(results)
    assert output == [
        f"7 of 9 have no 05: {reason} (s0, s1, s2, s3, s4 and 2 more)",
        "eve: There is no problem.py in 05-heads.",
    ]
    (shared,) = class_remarks(results).shared
    assert [person.name for person in shared.people] == [f"s{n}" for n in range(7)]


def test_a_message_for_few_students_is_shown_with_each() -> None:
    results = [missing(f"s{n}", "There is no 05.") for n in range(MANY - 1)]
    assert remarks(results) == [f"s{n}: There is no 05." for n in range(MANY - 1)]
    of_many = [missing(f"s{n}", "There is no 05.") for n in range(MANY)]
    of_many += [graded(f"t{n}") for n in range(60)]
    assert len(remarks(of_many)) == MANY


# Changed marks


@pytest.mark.parametrize(
    ("adjustment", "output"),
    [
        (Adjustment(-1.5, "Late by 1 day."), "-1.5 points: Late by 1 day."),
        (Adjustment(1, "The text was unclear."), "+1 point: The text was unclear."),
        (
            Adjustment(0, "Left out for all.", -2),
            "the maximum is 2 points lower: Left out for all.",
        ),
        (
            Adjustment(-2, "Left out for all.", -2),
            "-2 points, the maximum is 2 points lower: Left out for all.",
        ),
        (Adjustment(0, "Looked at again."), "Looked at again."),
    ],
)
def test_an_adjustment_is_explained(adjustment: Adjustment, output: str) -> None:
    assert adjustment_line(adjustment) == output


def test_every_report_explains_changed_marks() -> None:
    result = graded("ada", points=2.5)
    page = feedback_page(result, Policy.POINTS)
    assert "-1.5 points: Late by 1 day." in page
    assert "The tests gave 4 points." in page
    assert "01: -1.5 points: Late by 1 day." in dashboard([result], ["01-doubling"])
    assert remarks([result]) == ["ada: 01: -1.5 points: Late by 1 day."]


def test_gradescopes_score_rounds_as_the_gradebook_does() -> None:
    thirds = [TestResult(f"test_{n}", "it", False, 2 / 3, Status.PASSED) for n in "abc"]
    result = result_of("ada", ProblemResult("01", "x", thirds))
    data = json.loads(results_json(result, Policy.FULL))
    assert data["score"] == 2
    assert [test["score"] for test in data["tests"]] == [0.67, 0.67, 0.67]
    assert [test["max_score"] for test in data["tests"]] == [0.67, 0.67, 0.67]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("source", ["x = 'é'", "# é"])
def test_a_wrong_encoding_is_reported_in_plain_words(
    tmp_path: Path, source: str, encoding: str
) -> None:
    path = tmp_path / "problem.py"
    path.write_bytes(source.encode(encoding))
    with pytest.raises((SyntaxError, ValueError)) as raised:
        load_module(path, "problem_encoded")
    output = judge_load(raised.value, path)
    student_result = graded("ada")
    student_result.problems[0].tests = [doubles(output.status, str(output))]
    remark = class_remarks([student_result]).single["ada"]
    assert remark == "01: problem.py is not UTF-8 text; save it as UTF-8."
