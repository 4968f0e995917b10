"""Reports are valid for any names and any output of students."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from grader.course import own_course
from grader.reports.class_table import RunSummary, about_book, about_run, remarks
from grader.reports.dashboard import dashboard
from grader.reports.feedback import feedback_page
from grader.reports.gradescope_json import refused_json, results_json
from grader.reports.news import News
from grader.reports.sources import Sources
from grader.reports.student_page import student_pages
from grader.result import Adjustment, Policy, ProblemResult, Status, SubmissionResult, TestResult
from grader.student.report import problem_report
from tests.results import feedback_text, result_of

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--&lt;&#0;",
    "".join(map(chr, range(32))) + "\x7f\x9b31m",
    "\x1b[31m\x1b]0;title\x07",
    "\u202egpj.exe\u2066\u200f\u061c",
    "\ud800 \udfff \ufffe \uffff",
    "| a | `b` | [c](javascript:d) | ![e](f)",
    "=HYPERLINK(1)",
    "line\r\nline\u2028line\u0085line",
]
NEVER_RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def result_with(text: str, name: str = "ada") -> SubmissionResult:
    """Return a result with `text` in each field that a student can influence."""
    tests = [
        TestResult("test_seen[1]", "It doubles", False, 1, Status.PASSED, seconds=0.5),
        TestResult("test_seen[2]", "It doubles", False, 1, Status.FAILED, text, (text,), 0.5),
        TestResult(f"test_unseen[{text}]", text, True, 2, Status.ERROR, text),
    ]
    problem = ProblemResult("01-softmax", "abc", tests, [text], [text], [["no_scale"]])
    problem.adjustments, problem.handed_in = [Adjustment(0, text)], text
    return result_of(name, problem, notes=[text], members=(text,), identity=text, full_name=name)


class Page(HTMLParser):
    """Collects the elements, the links and the text of a page, as a browser reads it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


def pages(result: SubmissionResult, source: bytes = b"") -> list[str]:
    with TemporaryDirectory() as folder:
        sources = Sources(Path(folder))
        sources.keep([source])
        result.problems[0].sha256 = sha256(source).hexdigest()
        ((_, about_student),) = student_pages([result], sources)
    return [dashboard([result], ["01-softmax"]), feedback_page(result, Policy.FULL), about_student]


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_students_adds_no_markup_to_a_page(text: str) -> None:
    rows = len(re.split("\r\n|\r|\n", text))
    usual = [Page(page) for page in pages(result_with("usual"), b"\n".join([b"x"] * rows))]
    source = text.encode(errors="surrogatepass")
    for page, plain in zip(pages(result_with(text, name=text), source), usual, strict=True):
        page.encode()
        assert not NEVER_RAW.search(page)
        assert Page(page).tags == plain.tags
        if "<" in text:
            assert text in Page(page).text


def test_a_page_needs_no_other_files() -> None:
    for page in pages(result_with("usual")):
        local = re.compile(r"(\.\./)?((feedback|instructor|results)/)?[\w%.-]*(#[\w-]+)?")
        assert all(local.fullmatch(link) for link in Page(page).links)
        assert "url(" not in page
        assert "@import" not in page


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_character_reaches_a_terminal(text: str) -> None:
    result = result_with(text, name=text)
    result.problems[0].tests = result.problems[0].tests[1:2]  # a single message becomes a remark
    run = RunSummary(
        graded=0, news=News(missing=[text], about_book=[text]), damaged={text: text}, absent=[text]
    )
    lines = [
        *remarks([result]),
        *about_run(run),
        *about_book(run),
        problem_report(result.problems[0], 0),
    ]
    assert lines
    assert not any(NEVER_RAW.search(line) for line in lines)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_text_of_feedback_contains_no_control_character(text: str) -> None:
    written = feedback_text(result_with(text, name=text), Policy.FULL)
    written.encode()
    assert not NEVER_RAW.search(written)


# Content that students may read

CANARY = "canary-7f3a"


def with_canary() -> SubmissionResult:
    result = result_with("")
    last = TestResult("test_unseen", "Other numbers", True, 2, Status.ERROR, CANARY)
    result.problems[0].tests = [*result.problems[0].tests[:2], last]
    return result


@pytest.mark.parametrize("policy", [Policy.POINTS, Policy.TITLES])
def test_no_student_sees_a_hidden_message(policy: Policy) -> None:
    for view in (feedback_page, results_json):
        assert CANARY not in view(with_canary(), policy)
        assert CANARY in view(with_canary(), Policy.FULL)
        assert ("Other numbers" in view(with_canary(), policy)) is (policy is Policy.TITLES)


@pytest.mark.parametrize("policy", Policy)
def test_gradescope_receives_the_points(policy: Policy) -> None:
    data = json.loads(results_json(with_canary(), policy))
    tests = data["tests"]
    assert sum(test["score"] for test in tests) == 1
    assert sum(test["max_score"] for test in tests) == 4
    assert [test["status"] for test in tests] == ["failed", "failed"]
    shown = "visible" if policy is Policy.FULL else "after_published"
    assert [test["visibility"] for test in tests] == ["visible", shown]


def test_gradescope_shows_a_mistake_with_its_test() -> None:
    text = "It looks as if nothing is scaled."
    tests = [
        TestResult("test_one", "It adds", False, 2, Status.PASSED),
        TestResult("test_two", "It scales", False, 4, Status.FAILED, "wrong"),
        TestResult("test_unseen", "Other numbers", True, 2, Status.FAILED),
    ]
    result = result_of("ada", ProblemResult("01-softmax", "abc", tests, diagnoses=[text]))
    data = json.loads(results_json(result, Policy.TITLES))
    assert [text in test["output"] for test in data["tests"]] == [False, True, False]
    assert "Visible tests: 2 of 6 points" in data["output"]
    assert "Visible tests" not in json.loads(results_json(result, Policy.FULL))["output"]


def test_gradescope_shows_why_nothing_was_graded() -> None:
    data = json.loads(refused_json("It holds\x1b nothing."))
    assert (data["score"], data["output"]) == (0, "It holds\ufffd nothing.")


def test_an_unread_file_is_not_reported_as_an_exception() -> None:
    reason = "ada.zip is not a zip file."
    test = TestResult("test_unseen", "Other numbers", True, 2, Status.ERROR, reason)
    problem = ProblemResult("01-softmax", tests=[test], notes=[reason])
    result = result_of("ada", problem)
    assert "Other numbers: your file could not be read" in feedback_text(result, Policy.TITLES)
    problem.sha256, problem.notes = "abc", []
    assert "Other numbers: your code raised an exception" in feedback_text(result, Policy.TITLES)


# Reports about the whole class


def test_points_by_hand_count_only_for_students_who_have_them() -> None:
    full = TestResult("test_seen[1]", "It doubles", False, 10, Status.PASSED)
    by_hand = Adjustment(4, "Style", 5)
    problems = [ProblemResult("01-softmax", "abc", [full], adjustments=a) for a in ([], [by_hand])]
    results = [result_of(str(n), p) for n, p in enumerate(problems)]
    full_and_untried = '<td class="number">1</td><td class="number">0</td>'
    page = dashboard(results, ["01-softmax"])
    assert full_and_untried in page
    assert "of 15 points" in page
    assert 'title="90-100 %: 2"' in page  # 10 of 10, and 14 of 15


# The documented model


def test_a_result_is_read_back_unchanged() -> None:
    result = result_with("\x1b\ud800")
    data = json.loads(json.dumps(result.to_json()))
    assert SubmissionResult.from_json(data) == result


def test_every_field_is_documented() -> None:
    text = (own_course().root / "docs/results.md").read_text(encoding="utf-8")
    parts = {part.splitlines()[0]: part for part in text.split("\n## ")}
    data = result_with("").to_json()
    problem = data["problems"][0]
    for title, found in [
        ("A submission", data),
        ("A problem", problem),
        ("A test", problem["tests"][0]),
    ]:
        documented = set(re.findall(r"^\| `(\w+)` \|", parts[title], re.MULTILINE))
        assert documented == set(found)
    statuses = set(re.findall(r"^\| `(\w+)` \|", parts["Statuses of a test"], re.MULTILINE))
    assert statuses == {status.value for status in Status}
    assert {f.name for f in fields(TestResult)} <= set(data["problems"][0]["tests"][0])
