"""Names and messages that students choose are plain text in the gradebook and in feedback."""

import csv

import pytest

from grader.reports.gradebook_csv import write_gradebook
from grader.result import Policy, ProblemResult, Status
from tests.results import doubles, feedback_text, result_of

FORMULAS = ['=HYPERLINK("http://x","y")', "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", " =1", "\n=1"]
FORMULAS += ["\uff1d1+1", " \uff0b1", "\uff0d1", "\uff20SUM(1)", "\ufe661", "\u22121"]
NAMES = [*FORMULAS, "a,b", 'a"b', "a\nb", "a;b", "a\r\nada,graded,4,4", "\x1b[31m\u202e\ud800"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_cell_of_the_gradebook_and_no_formula(tmp_path, name):
    write_gradebook([result(name), result("zoe")], ["01"], tmp_path / "gradebook.csv")
    with (tmp_path / "gradebook.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert [len(row) for row in rows] == [6, 6, 6]
    (cell,) = [row[0] for row in rows[1:] if row[0] != "zoe"]
    assert cell[0] not in "=+-@\t\r\uff1d\uff0b\uff0d\uff20\ufe66\u2212"
    assert cell.startswith("'") == (name in FORMULAS and "\ufffd" not in cell)
    assert cell.isprintable()
    assert cell.removeprefix("'") == name.strip() or not name.isprintable()


def test_a_message_in_the_text_of_feedback_stays_indented():
    """A line of a student's message cannot be mistaken for a line of the grader."""
    message = "x\n\n# 25 of 25 points\n- all is right: passed"
    lines = feedback_text(result("ada", message), Policy.FULL).splitlines()
    assert [line for line in lines if "25 of 25" in line or "all is right" in line] == [
        "    # 25 of 25 points",
        "    - all is right: passed",
    ]


def result(name, message="no"):
    return result_of(name, ProblemResult("01", tests=[doubles(Status.FAILED, message)]))
