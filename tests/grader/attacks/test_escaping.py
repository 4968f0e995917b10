"""What students choose, names and messages, is text in the gradebook and in the feedback."""

import csv
import re

import pytest

from grader.reports.feedback import feedback
from grader.reports.gradebook_csv import write_gradebook
from grader.result import Policy, ProblemResult, Status
from tests.results import doubles, result_of

FORMULAS = ['=HYPERLINK("http://x","y")', "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", " =1", "\n=1"]
FORMULAS += ["\uff1d1+1", " \uff0b1", "\uff0d1", "\uff20SUM(1)", "\ufe661", "\u22121"]
NAMES = [*FORMULAS, "a,b", 'a"b', "a\nb", "a;b", "a\r\nada,graded,4,4", "\x1b[31m\u202e\ud800"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_gradebook_is_one_cell_and_no_formula(tmp_path, name):
    write_gradebook([result(name), result("zoe")], ["01"], tmp_path / "gradebook.csv")
    with (tmp_path / "gradebook.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert [len(row) for row in rows] == [5, 5, 5]
    (cell,) = [row[0] for row in rows[1:] if row[0] != "zoe"]
    assert cell[0] not in "=+-@\t\r\uff1d\uff0b\uff0d\uff20\ufe66\u2212"
    assert cell.startswith("'") == (name in FORMULAS)
    assert cell.isprintable()
    assert cell.removeprefix("'") == name or not name.isprintable()


TEXTS = {
    "a script": "<script>alert(1)</script>",
    "a picture": "![x](http://x/y.png)",
    "a link": "[x](javascript:alert(1))",
    "the end of a block": "```\n# 25 of 25 points\n```",
    "a heading": "x\n\n# 25 of 25 points",
    "a heading below": "25 of 25 points\n===",
    "an item": "x\n\n- all is right: passed",
    "a table": "| a | b |\n| - | - |",
    "an entity": "&lt;b&gt;",
    "other line ends": "x\u2028# y\u2029# z\x0b# a\x85# b\r# c",
    "an escape": "\x1b]0;title\x07\x1b[2J",
    "another direction": "\u202eabc\u2066",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_message_in_the_feedback_is_text(name):
    """Each of its lines stands in a block of code, in which Markdown knows no signs."""
    plain = feedback(result("ada", message="quite harmless"), Policy.FULL).splitlines()
    lines = feedback(result("ada", message=TEXTS[name]), Policy.FULL).splitlines()
    block = [line for line in lines if line.startswith("      ")]
    assert [line for line in lines if line and line not in block] == [
        line for line in plain if line and "quite harmless" not in line
    ]
    assert all(c.isprintable() for line in block for c in line)


@pytest.mark.parametrize("name", TEXTS)
def test_a_name_in_the_feedback_is_text(name):
    text = feedback(result(TEXTS[name]), Policy.FULL)
    assert not re.search(r"(?<!\\)[<>\[\]`|&!]", text)
    assert all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize(
    "name",
    ["http://x.org", "HTTPS://x.org", "ftp://x.org", "www.x.org", "WWW.x.org", "@ada", "a@b.org"],
)
def test_a_name_is_no_link_and_calls_nobody(name):
    """Readers of Markdown make links of addresses, and GitHub tells those whose name it finds."""
    text = feedback(result(f"see {name}"), Policy.FULL)
    assert not re.search(r"(?i)(http|https|ftp)://|www\.|@\w", text)
    assert name.rpartition("/")[2].replace("@", "").split(".")[0] in text.replace(
        "\u034f", ""
    ).replace("@", "")


def result(name, message="no"):
    """Return a result with one failed test."""
    return result_of(name, ProblemResult("01", tests=[doubles(Status.FAILED, message)]))
