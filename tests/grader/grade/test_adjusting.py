"""Each run applies corrections and the late policy without grading submissions again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grader.errors import UsageError
from grader.grade.previous import load_previous
from grader.gradebook.adjusting import ClassBook
from grader.gradebook.folder import GradebookFolder, open_gradebook_folder
from grader.reports.class_table import about_book, about_run
from grader.result import ProblemResult, Status
from tests.results import doubles, result_of

DUE = "share = 0.1\n[deadlines]\n01 = 2026-10-24T12:00:00Z\n"
HEADER = "submission,problem,test,mark,reason\n"


def write_corrections(school: Any, lines: str) -> None:
    school.write_book("corrections.csv", HEADER + lines)


def book(school: Any) -> Any:
    return school.out.parent / "book"


def test_a_correction_applies_in_every_run_without_grading(school: Any) -> None:
    school.grade()
    write_corrections(school, "bob,01,,3,Only a slip\n")
    run = school.grade()
    assert school.names() == []
    assert [str(c) for c in run.news.changes] == [
        "bob: 01-doubling 0 -> 3 (Corrected: Only a slip)"
    ]
    assert school.gradebook() == {"ada": "4", "bob": "3"}
    assert "Only a slip" in (school.out / "feedback/bob.html").read_text()
    stored = (school.out / "results/bob.json").stat().st_mtime_ns
    again = school.grade()
    assert (again.graded, again.news.changes) == (0, [])
    assert (school.out / "results/bob.json").stat().st_mtime_ns == stored


def test_a_correction_stays_and_is_reported_after_a_new_submission(school: Any) -> None:
    write_corrections(school, "*,01,,3,For all\nbob,01,,3,Only a slip\n")
    school.grade()
    school.hand_in("ada", school.wrong)
    school.hand_in("bob", "def double(x): return 5 * x")
    asked = (
        "corrections.csv, line 3: bob has submitted a new file for 01-doubling since the last "
        "run. Is this line still right?"
    )
    assert about_run(school.grade()).count(asked) == 1
    assert (school.names(), school.gradebook()["bob"]) == (["ada", "bob"], "3")
    assert (book(school) / "corrections.csv").read_text().endswith("Only a slip\n")
    assert not [text for text in about_run(school.grade()) if "still right?" in text]


def test_a_removed_correction_no_longer_applies(school: Any) -> None:
    write_corrections(school, "*,01,test_doubles,leave out,Broken\n")
    school.grade()
    assert [row["max"] for row in school.rows().values()] == ["0", "0"]
    (book(school) / "corrections.csv").unlink()
    run = school.grade()
    assert [str(c) for c in run.news.changes] == [
        "ada: 01-doubling 0 -> 4 (no longer: Left out: Broken)"
    ]
    previous = load_previous(school.out / "results")
    assert [r.problems[0].adjustments for r in previous.results.values()] == [[], []]


@pytest.mark.parametrize(
    ("line", "suggested"),
    [
        ("eve,01,,3,why", "# eve,01,,3,why"),
        ("bob,01-dobling,,3,why", "bob,01-doubling,,3,why"),
        ("bob,01,test_doubles,9,why", "# bob,01,test_doubles,9,why"),
        ("bob,01,test_doubles[3],1,why", "bob,01,test_doubles["),
        ("Kim,01,,3,why", "bob,01,,3,why dan,01,,3,why"),
    ],
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
@pytest.mark.usefixtures("lent")
def test_a_correction_without_a_match_ends_the_run_and_suggests_a_line(
    line: str, suggested: str, dry: list[str], school: Any
) -> None:
    school.write_book("roster.csv", "id,name\ndan,Kim\nbob,Kim\n")
    school.hand_in("dan", school.right)
    write_corrections(school, f"{line}\n")
    said = school.command(*dry, status=2)
    assert "corrections.csv, line " in said
    assert suggested in said
    assert not school.out.exists()
    assert school.names() == []


@pytest.mark.parametrize(
    "text",
    [
        "share = 0.1\n[deadlines]\n01 = 2026-10-24T12:00:00Z\n11 = 2026-10-24T12:00:00Z\n",
        'flagged = 0.1\n[extensions]\nada = { 11 = "1 day" }\n',
        'flagged = { 11 = 0.1, "*" = 0.2 }\n',
    ],
)
def test_a_late_policy_for_an_unknown_problem_ends_the_run(text: str, school: Any) -> None:
    """The unknown number may be a typing error."""
    school.write_book("late.toml", text)
    said = school.command(status=2)
    assert "late.toml: there is no problem '11'" in said
    assert school.names() == []


def test_grading_one_submission_does_not_report_other_corrections(school: Any) -> None:
    write_corrections(school, "bob,01,,3,why\nada,01,test_gone,2,why\n")
    assert "test_gone" in school.command("--only", "ada", status=2)
    write_corrections(school, "bob,01,,3,why\n")
    assert "line 2, has no effect" in school.command("--only", "ada")
    assert "line 2" not in school.command()


def test_a_correction_may_precede_the_submission(school: Any) -> None:
    school.write_book("roster.csv", "id,name\neve,Eve\n")
    write_corrections(school, "Eve,01,,3,why\nbob,01,,3,why\n")
    run = school.grade()
    assert school.gradebook()["bob"] == "3"
    last = about_book(run)
    assert last[:2] == ["", "Check these lines in the book:"]
    assert "line 2, has no effect" in last[2]
    assert "line 2, has no effect" in (school.out / "index.html").read_text()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("corrections.csv", HEADER + "bob,01,,3\n"),
        ("criteria.csv", "who\n"),
        ("late.toml", "per ="),
        ("roster.csv", "a,b\nc,d\n"),
    ],
)
def test_an_unreadable_file_is_reported_before_grading(name: str, text: str, school: Any) -> None:
    school.write_book(name, text)
    with pytest.raises(UsageError, match=name):
        school.grade()
    assert school.names() == []


def test_a_gradebook_file_in_the_reports_folder_is_reported(school: Any) -> None:
    school.grade()
    (school.out / "corrections.csv").write_text(HEADER + "bob,01,,3,why\n")
    said = school.command()
    assert "is not read: move it to" in said
    assert school.gradebook() == {"ada": "4", "bob": "0"}


def test_a_missing_gradebook_folder_is_an_error(school: Any) -> None:
    with pytest.raises(UsageError, match="mkdir -p"):
        open_gradebook_folder(school.out / "bok", school.out)


def test_the_roster_gives_names_and_sections_and_missing_students(school: Any) -> None:
    school.write_book("roster.csv", "id,name,section\nada,Ada Lovelace,A\nkim,Kim Lee,B\n")
    said = school.command()
    assert "On the roster, without a submission: Kim Lee." in said
    assert "Not on the roster: bob." in said
    ada = school.rows()["ada"]
    assert (ada["submission"], ada["section"]) == ("Ada Lovelace", "A")
    page = (school.out / "index.html").read_text()
    assert "Ada Lovelace" in page
    assert "1 on the roster without a submission" in " ".join(page.split())
    school.command("--only", "ada lovelace", status=2)
    stored = (school.out / "results/ada.json").stat().st_mtime_ns
    school.command("--only", "Ada Lovelace")
    assert (school.out / "results/ada.json").stat().st_mtime_ns == stored


def test_the_page_begins_with_the_changes(school: Any) -> None:
    school.grade()
    assert "Since the last run" not in (school.out / "index.html").read_text()
    school.hand_in("eve", school.right)
    school.hand_in("bob", school.right)
    run = school.grade()
    assert "New since the last run: eve." in about_run(run)
    page = " ".join((school.out / "index.html").read_text().split())
    news = page[page.index("Since the last run") : page.index("Scores")]
    assert "1 mark changed" in news
    assert "submission changed" in news
    assert "eve</bdi>" in news
    school.grade()
    assert "No mark changed." in (school.out / "index.html").read_text()


@pytest.mark.parametrize("head", ["", HEADER, "Mark;Reason;Problem;Submission\n"])
def test_a_lower_mark_is_reported_with_the_line_that_keeps_the_earlier_one(
    school: Any, head: str
) -> None:
    school.hand_in("bob", school.right)
    criteria = "submission,problem,criterion,points,max\nbob,01,Style,1,2\nada,01,Style,1,2\n"
    school.write_book("criteria.csv", criteria)
    school.grade()
    if head:
        school.write_book("corrections.csv", head)
    school.hand_in("bob", school.wrong)
    told = about_run(school.grade())
    (at,) = [n for n, text in enumerate(told) if "The earlier file, which was in time" in text]
    assert "bob: 01-doubling has 0 points now" in told[at]
    assert "in time, had 4." in told[at]
    assert school.gradebook()["bob"] == "1"
    school.write_book("corrections.csv", f"{head or HEADER}{told[at + 1]}\n")
    assert not any("in time" in text for text in about_run(school.grade()))
    assert school.gradebook()["bob"] == "5"


@pytest.mark.parametrize(
    ("earlier", "policy", "asked"),
    [
        ({"late": True}, "", False),
        ({}, "", True),
        ({"handed_in": "2026-10-24T13:00:00Z"}, DUE, False),
        ({"handed_in": "2026-10-24T13:00:00Z"}, f'{DUE}[extensions]\nbob = "2 hours"\n', True),
    ],
)
def test_an_earlier_mark_of_a_late_file_is_not_kept(
    tmp_path: Path, earlier: dict[str, Any], policy: str, asked: bool
) -> None:
    (tmp_path / "late.toml").write_text(policy or "flagged = 0\n")
    old = result_of("bob", ProblemResult("01-doubling", "abc", [doubles()], **earlier))
    new = result_of("bob", ProblemResult("01-doubling", "abd", [doubles(Status.FAILED)]))
    told = ClassBook([new], GradebookFolder(tmp_path)).lower_than_before({"bob": old})
    assert bool(told) is asked


def test_applying_a_correction_does_not_import_the_test_file(school: Any) -> None:
    write_corrections(school, "bob,01,test_doubles,1,why\n")
    source = school.course.problems()[0].test_file
    source.write_text("import nothing_that_is_there\n" + source.read_text())
    assert "line 2" not in school.command()
