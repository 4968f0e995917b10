"""The page about one student shows all results next to the code, and links to other students."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from grader.grade.outcome import internal_result
from grader.reports.dashboard import dashboard
from grader.reports.feedback import feedback_page
from grader.reports.identical import Identical
from grader.reports.page import write_pages
from grader.reports.source_view import MOST_LINES, SourceView
from grader.reports.sources import Sources
from grader.reports.student_page import student_pages
from grader.result import Policy, ProblemResult, Status, SubmissionResult, TestResult
from tests.results import result_of

SOURCE = b'''"""Mine."""

def dot(q, k):
    return q @ k

class Attention:
    def forward(self, x):
        return dot(x, x)
'''
MISTAKE = "It looks as if nothing is scaled."


def student(name: str, *tests: TestResult, mistakes: bool = False) -> SubmissionResult:
    made = ([MISTAKE], [["no_scale"]]) if mistakes else ([], [])
    passed = TestResult("test_first", "It has a name", False, 1, Status.PASSED)
    problem = ProblemResult(
        "03-scaled", sha256(SOURCE).hexdigest(), [passed, *tests], [], made[0], made[1]
    )
    return result_of(name, problem, full_name=name.title())


def failing(message: str, case: str = "1", title: str = "It scales") -> TestResult:
    return TestResult(f"test_hidden[{case}]", title, True, 2, Status.FAILED, message)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    kept = Sources(tmp_path / "sources")
    kept.keep([SOURCE])
    return kept


def pages(
    results: list[SubmissionResult], sources: Sources, identical: Sequence[Identical] = ()
) -> dict[str, str]:
    return dict(student_pages(results, sources, identical))


def test_messages_of_hidden_tests_are_shown_to_instructors(sources: Sources) -> None:
    ada = student("ada", failing("dot(q, k) gave 1"), failing("dot(q, k) gave 2", "2"))
    page = pages([ada], sources)["ada"]
    for output in ("It scales", "dot(q, k) gave 1", "dot(q, k) gave 2", "test_hidden[2]"):
        assert output in page
    assert "in 2 of 2 cases" in page
    assert "Only for the instructor" in page


def test_the_code_is_next_to_the_tests(sources: Sources) -> None:
    page = pages([student("ada", failing("dot(q, k) gave 1"))], sources)["ada"]
    assert '<a href="#03-scaled-3">dot, line 3</a>' in page
    assert '<span id="03-scaled-3">def dot(q, k):\n</span>' in page


def test_a_missing_copy_of_the_file_is_reported(tmp_path: Path) -> None:
    page = pages([student("ada", failing("x"))], Sources(tmp_path / "none"))["ada"]
    assert "does not contain the graded file" in page


def test_tests_with_equal_messages_are_shown_once(sources: Sources) -> None:
    tests = [failing("not written yet: dot (line 4)", str(n)) for n in range(9)]
    ada = student("ada", *tests)
    del ada.problems[0].tests[0]
    page = pages([ada], sources)["ada"]
    assert page.count("not written yet") == 1
    assert "All 9 tests" in page


def of_mistake(name: str, case: str) -> TestResult:
    return replace(failing(f"dot(q, k) gave {case}", case, name), id=name, diagnosis=("no_scale",))


@pytest.mark.parametrize("view", ["instructor", "student"])
def test_one_failure_of_each_mistake_is_shown_and_failures_come_first(
    sources: Sources, view: str
) -> None:
    tests = [of_mistake("test_a", "1"), of_mistake("test_b", "2"), failing("another", "3", "Other")]
    ada = student("ada", *tests, mistakes=True)
    right = TestResult("test_ok", "It is right", False, 5, Status.PASSED)
    ada.problems.insert(0, ProblemResult("01-softmax", "abc", [right]))
    if view == "instructor":
        ((_, page),) = student_pages([ada], sources, date="2026-11-02")
    else:
        ada.problems[1].tests = [replace(test, hidden=False) for test in ada.problems[1].tests]
        page = feedback_page(ada, Policy.TITLES, "2026-11-02")
    body = page[page.index("<h1>") :]
    assert body.index("01: 5/5") < body.index("03: 1/7")  # the table of contents is not reordered
    assert body.count(MISTAKE) == 1
    places = [MISTAKE, "gave 1", "<details>", "gave 2", "</details>", "another", "1 test passed"]
    places += ['id="01-softmax"', "2026-11-02"]
    found = [body.index(text) for text in places]
    assert found == sorted(found)
    assert "1 more test fails in the same way" in body


def test_a_mistake_links_to_other_students_with_it(sources: Sources) -> None:
    wrong = failing("dot(q, k) gave 1")
    results = [student(name, wrong, mistakes=True) for name in ("ada", "bob", "eve")]
    page = pages([*results, student("zoe", wrong)], sources)["ada"]
    assert '<a href="../index.html#03-scaled-no-scale">no_scale</a>' in page
    assert '<a href="bob.html#03-scaled"><bdi>Bob</bdi></a>' in page
    assert "zoe.html" not in page
    index = dashboard(results, ["03-scaled"])
    assert 'id="03-scaled-no-scale"' in index
    assert '<a href="instructor/ada.html"><bdi>Ada</bdi></a>' in index


def test_pages_of_former_students_are_removed(tmp_path: Path, sources: Sources) -> None:
    folder = tmp_path / "instructor"
    both = [student("ada"), student("bob")]
    write_pages(student_pages(both, sources), folder)
    before = (folder / "ada.html").stat().st_mtime_ns
    write_pages(student_pages(both, sources), folder)
    assert (folder / "ada.html").stat().st_mtime_ns == before
    write_pages(student_pages(both[:1], sources), folder)
    assert [path.name for path in folder.iterdir()] == ["ada.html"]


def test_an_internal_error_has_a_page_without_a_mark(sources: Sources) -> None:
    page = pages([internal_result("ada", "a fault")], sources)["ada"]
    assert "the grader itself failed" in page
    assert "0 of 0" not in page.split("</h1>")[1].split("</p>")[0]


# Places in the code


@pytest.mark.parametrize(
    ("message", "title", "label"),
    [
        ("dot(q, k)\nAll rows differ", "", "dot, line 3"),
        ("ValueError: no\n  problem.py:4 in dot: return q @ k", "", "line 4"),
        ("not written yet: dot (line 4)", "", "line 4"),
        ("problem.py can't be read as Python: expected ':'\n  line 7", "", "line 7"),
        ("attention(x) with attention = Attention(3)", "", "Attention, line 6"),
        ("attention(x) is wrong", "Attention is right", "Attention, line 6"),
        ("attention(x) is wrong", "It is right", ""),
        ("line 900 (line 900)", "", ""),
    ],
)
def test_the_page_links_to_the_place_in_the_code(message: str, title: str, label: str) -> None:
    place = SourceView.of(SOURCE).place_of(message, title)
    assert (place.label if place else "") == label


@pytest.mark.parametrize(
    "source",
    [b"", b"\xff\xfe\x00", b"def f(:\r\n  (((\r", b"\xef\xbb\xbfdef f(): pass", b"(" * 9999],
)
def test_any_file_can_be_shown(source: bytes) -> None:
    view = SourceView.of(source)
    assert view.shown
    assert view.place_of("f(x)") is None or "def f" in source.decode(errors="replace")


def test_the_beginning_of_a_long_file_is_shown(tmp_path: Path) -> None:
    long = b"x = 1\n" * (MOST_LINES + 1)
    sources = Sources(tmp_path)
    sources.keep([long])
    ada = student("ada", failing("x"))
    ada.problems[0].sha256 = sha256(long).hexdigest()
    page = pages([ada], sources)["ada"]
    assert f"The first {MOST_LINES} of {MOST_LINES + 1} lines." in page
    assert page.count("<span id=") == MOST_LINES


# Kept files


def test_a_damaged_copy_is_written_again(tmp_path: Path) -> None:
    sources = Sources(tmp_path)
    sources.keep([SOURCE])
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"something else")
    assert sources.read(path.stem) is None
    sources.keep([SOURCE])
    assert sources.read(path.stem) == SOURCE


def test_rows_can_be_filtered_with_a_label_and_a_count() -> None:
    page = dashboard([student("ada")], ["03-scaled"])
    assert re.search(r'<label for="filter">[^<]+</label>\s*<input type="search" id="filter"', page)
    assert 'aria-describedby="filtered"' in page
    assert '<span id="filtered" role="status"' in page
    assert 'data-rows="submissions"' in page
    assert '<table id="submissions" ' in page
    assert '<tr data-find=" ">' in page


def test_a_command_finds_a_student_by_the_name_on_the_roster(sources: Sources) -> None:
    ada = replace(student("Ada L~1a2b"), identity="github:ada")
    assert '"CLASS/github:ada" 03/test_name' in unescape(pages([ada], sources)["Ada L~1a2b"])
