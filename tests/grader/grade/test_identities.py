"""Marks go to the right students over several weeks, with names in any writing system."""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from grader.errors import UsageError
from grader.reports.class_table import about_book
from tests.conftest import add_problem
from tests.grader.grade.conftest import OTHER
from tests.grader.intake.uploads import write


def test_marks_stay_with_their_student(term: Any, tmp_path: Path) -> None:
    first = {"王芳_1004_90_problem.py": term.right, "李娜_1005_91_problem.py": term.wrong}
    term.grade(write(tmp_path / "week1", first), only="01")
    term.grade(write(tmp_path / "week2", {"李娜_1005_99_problem.py": term.right}), only="02")
    found = term.rows("member")
    assert (found["1004"]["submission"], found["1004"]["01-doubling"]) == ("王芳", "4")
    assert found["1004"][OTHER] == ""
    assert (found["1005"]["submission"], found["1005"]["01-doubling"]) == ("李娜", "0")
    assert found["1005"][OTHER] == "4"


def test_a_class_in_one_students_archive_is_reported(term: Any, tmp_path: Path) -> None:
    both = {f"{name}/01-doubling/problem.py": term.right for name in ("ada", "mallory")}
    assert "read as a class" not in term.command(path=write(tmp_path / "class", both))
    mallory = {f"{name}/01-doubling/problem.py": term.wrong for name in ("ada", "mallory")}
    shutil.make_archive(str(tmp_path / "mallory"), "zip", write(tmp_path / "of mallory", mallory))
    told = term.command(path=tmp_path / "mallory.zip")
    assert "'mallory.zip' was read as a class, although a student has that name." in told


def test_a_renamed_student_keeps_the_row(term: Any, tmp_path: Path) -> None:
    term.grade(write(tmp_path / "week1", {"ada_7_90_problem.py": term.right}), only="01")
    term.grade(write(tmp_path / "week2", {"bea_7_91_problem.py": term.right}), only="02")
    (row,) = term.rows("member").values()
    assert (row["submission"], row["01-doubling"], row[OTHER]) == ("bea", "4", "4")
    assert len(list((term.out / "results").iterdir())) == 1
    assert len(list((term.out / "feedback").iterdir())) == 1


def test_a_student_of_a_different_platform_has_a_new_row(term: Any, tmp_path: Path) -> None:
    term.grade(write(tmp_path / "week1", {"ada/problem.py": term.right}), only="01")
    clone = {"hw_submissions_2026_11_24_T_09_05_00/hw-ada/problem.py": term.wrong}
    term.grade(write(tmp_path / "week2", clone), only="01")
    results = [json.loads(p.read_text()) for p in (term.out / "results").iterdir()]
    assert {r["identity"]: r["points"] for r in results} == {"ada": 4, "github:ada": 0}


def test_a_result_with_a_different_identity_is_ignored(term: Any, tmp_path: Path) -> None:
    """The identity is different, for example, if a user renamed the result file."""
    week = write(tmp_path / "week1", {"ada_7_90_problem.py": term.right})
    term.grade(week, only="01")
    (path,) = (term.out / "results").iterdir()
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"identity": "canvas:8"}))
    run = term.grade(week, only="01")
    results = [json.loads(p.read_text()) for p in (term.out / "results").glob("*.json")]
    assert sorted(r["identity"] for r in results) == ["canvas:7", "canvas:8"]
    assert len(run.results) == 2
    assert any("canvas:7" in line for line in run.messages)


# Entries in names.csv


def test_existing_rows_are_joined(term: Any, tmp_path: Path) -> None:
    """The command prints the lines for names.csv that join the rows of a student."""
    write_moodle = "Ada Lovelace_{}_assignsubmission_file_/problem.py"
    week1 = {write_moodle.format(7): term.right, write_moodle.format(8): term.right}
    week1 |= {"Bea_9_assignsubmission_file_/problem.py": term.wrong}
    term.grade(write(tmp_path / "week1", week1), only="01")
    week2 = write(tmp_path / "week2", {"Bea_93_assignsubmission_file_/problem.py": term.right})
    for _ in range(2):
        run = term.grade(week2, only="02")
        assert len(run.results) == 4
        assert run.messages[0].startswith(
            "Rows that may belong to the same student or group: 1. Copy the"
        )
        assert run.messages[1:] == ["moodle:93,moodle:9,Bea"]
    before = stored_results(term)
    run = term.grade(week2, only="02", people={"moodle:93": "moodle:9"})
    assert (run.messages, len(run.results)) == ([], 3)
    bea = next(result for result in run.results if result.identity == "moodle:9")
    assert [problem.points for problem in bea.problems] == [0, 4]
    pages = [path.read_text(encoding="utf-8") for path in (term.out / "feedback").iterdir()]
    assert len(pages) == 3
    assert sum("01-doubling" in page and OTHER in page for page in pages) == 1
    assert stored_results(term) == before
    assert len(term.grade(week2, only="02").results) == 4
    assert len(list((term.out / "feedback").iterdir())) == 4


def stored_results(term: Any) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (term.out / "results").iterdir()}


def test_gradebook_lines_about_either_name_apply(term: Any, tmp_path: Path) -> None:
    term.grade(write_moodle(tmp_path / "week1", term, "Ada=1 Bea=2"), only="01")
    term.write_book(
        "corrections.csv",
        "submission,problem,test,mark,reason\nmoodle:1,01,,3,A\nmoodle:11,02,,2,B\n",
    )
    week2 = write_moodle(tmp_path / "week2", term, "Ada=11 Bea=12")
    people = {"moodle:11": "moodle:1", "moodle:12": "moodle:2"}
    for _ in range(2):
        run = term.grade(week2, only="02", people=people)
        assert run.news.about_book == []
        assert {r.identity: r.points for r in run.results} == {"moodle:1": 5, "moodle:2": 8}
    assert run.news.changes == []
    assert run.news.missing == []


def write_moodle(folder: Path, term: Any, names: str) -> Path:
    """Write a Moodle download. `names`, such as "Ada=1 Bea=2", lists students with right files."""
    each = [name.replace("=", "_") for name in names.split()]
    files = {f"{name}_assignsubmission_file_/problem.py": term.right for name in each}
    return write(folder, files)


def test_lines_for_names_csv_are_printed_until_they_are_added(term: Any, tmp_path: Path) -> None:
    add_problem(term.course.root, "03-doubling")
    weeks = ["Ada=1 Bea=2 Cy=3", "Ada=11 Cy=13 Dan=14", "Ada=21 Bea=22 Dan=24"]
    for n, names in enumerate(weeks, 1):
        run = term.grade(write_moodle(tmp_path / f"week{n}", term, names), only=f"0{n}")
    people = dict(line.split(",")[:2] for line in run.messages[1:])
    ada, bea, cy, dan = (f"moodle:{n}" for n in (1, 2, 3, 14))
    assert people == {
        "moodle:11": ada,
        "moodle:13": cy,
        "moodle:21": ada,
        "moodle:22": bea,
        "moodle:24": dan,
    }
    assert "same student or group: 5." in run.messages[0]
    run = term.grade(tmp_path / "week3", only="03", people=people)
    assert run.messages == []
    assert {r.identity: r.points for r in run.results} == {ada: 12, bea: 8, cy: 8, dan: 8}


def write_groups(folder: Path, term: Any, **members: str) -> Path:
    """Write Gradescope's export of groups. For wrong="ab", a and b are a group with wrong code."""
    lines, files = [], {}
    for number, (source, people) in enumerate(members.items()):
        lines.append(f"submission_{number}:\n  :submitters:\n")
        lines += [f"  - :name: {who}\n    :email: {who}@x.edu\n" for who in people]
        files[f"submission_{number}/problem.py"] = getattr(term, source.rstrip("_"))
    return write(folder, {"submission_metadata.yml": "".join(lines), **files})


def test_a_group_with_a_new_member_has_one_row_if_names_csv_joins_them(
    term: Any, tmp_path: Path
) -> None:
    term.write_book("corrections.csv", "submission,problem,test,mark,reason\na@x.edu,01,,3,style\n")
    term.grade(write_groups(tmp_path / "1", term, wrong="ab", right="d"), only="01")
    week2 = write_groups(tmp_path / "2", term, right="abc", right_="d")
    with pytest.raises(UsageError) as error:
        term.grade(week2, only="01")
    assert "a@x.edu' may refer to" in str(error.value)
    *_, line = str(error.value).splitlines()
    assert line == "gradescope:a@x.edu+b@x.edu,gradescope:a@x.edu+b@x.edu+c@x.edu,a + b"
    people = dict([line.split(",")[:2]])
    run = term.grade(week2, only="01", people=people)
    assert (run.messages, run.news.about_book) == ([], [])
    assert {r.members: r.points for r in run.results} == {
        ("a@x.edu", "b@x.edu", "c@x.edu"): 3,
        ("d@x.edu",): 4,
    }


def test_results_of_a_smaller_group_stay_with_its_members(term: Any, tmp_path: Path) -> None:
    term.grade(write_groups(tmp_path / "1", term, right="ab"), only="01")
    term.grade(write_groups(tmp_path / "2", term, right="ab"), only="02")
    week3 = write_groups(tmp_path / "3", term, wrong="abc")
    (_, line) = term.grade(week3, only="02").messages
    run = term.grade(week3, only="02", people=dict([line.split(",")[:2]]))
    found = {r.members: {p.id: p.points for p in r.problems} for r in run.results}
    assert found == {
        ("a@x.edu", "b@x.edu"): {"01-doubling": 4},
        ("a@x.edu", "b@x.edu", "c@x.edu"): {OTHER: 0},
    }


def test_a_student_who_left_a_group_keeps_the_mark(term: Any, tmp_path: Path) -> None:
    term.grade(write_groups(tmp_path / "1", term, right="ab"), only="01")
    run = term.grade(write_groups(tmp_path / "2", term, wrong="ac"), only="01")
    assert run.messages == []
    assert {r.members: r.points for r in run.results} == {
        ("a@x.edu", "b@x.edu"): 4,
        ("a@x.edu", "c@x.edu"): 0,
    }


@pytest.mark.parametrize("roster", ["name,login\nAda L,ada-new\n", ""])
def test_an_account_on_the_roster_under_a_different_name_is_reported(
    term: Any, tmp_path: Path, roster: str
) -> None:
    name = "hw_submissions_2026_11_24_T_09_05_00"
    for week, user, source in ((1, "ada", term.wrong), (2, "ada-new", term.right)):
        if roster:
            known = f"name,login\nAda L,{user}\n"
            term.write_book("roster.csv", known)
        folder = write(tmp_path / str(week), {f"{name}/hw-{user}/problem.py": source})
        said = term.command("--problem", "01", path=folder)
    assert ("github:ada,github:ada-new," in said) is bool(roster)
    assert len(term.gradebook()) == 2
    if roster:
        term.write_book("names.csv", "found,means\ngithub:ada,github:ada-new\n")
        term.command("--problem", "01", path=folder)
        assert [*term.gradebook().values()] == ["4"]


def test_two_students_of_one_name_with_new_numbers_are_listed(term: Any, tmp_path: Path) -> None:
    term.grade(write_moodle(tmp_path / "week1", term, "Kim=1 Kim=2"), only="01")
    for _ in range(2):
        run = term.grade(write_moodle(tmp_path / "week2", term, "Kim=11 Kim=12"), only="02")
        (line,) = run.messages
        assert line.startswith("Several rows are called 'Kim': 'moodle:1', ")
    people = {"moodle:11": "moodle:2", "moodle:12": "moodle:1"}
    run = term.grade(tmp_path / "week2", only="02", people=people)
    assert [(r.identity, r.points) for r in run.results] == [("moodle:1", 8), ("moodle:2", 8)]
    assert run.messages == []


@pytest.mark.parametrize("second", ["01", "02"])
def test_two_canvas_numbers_are_two_students(term: Any, tmp_path: Path, second: str) -> None:
    """The number of a Canvas account never changes, so two numbers are two students."""
    term.write_book("roster.csv", "Student,ID,Section\nkim,1002,A\n")
    term.grade(write(tmp_path / "week1", {"kim_1001_11_problem.py": term.right}), only="01")
    week2 = write(tmp_path / "week2", {"kim_1002_12_problem.py": term.right})
    assert "names.csv" not in term.command("--problem", second, path=week2)


def test_a_name_that_ends_like_another_is_not_matched(term: Any, tmp_path: Path) -> None:
    """Moodle writes a group before a name, as in Blue-Ada. But Anne-Marie is not Marie."""
    week1, week2 = ["Anne-Marie Curie_7", "Blue-Bob_8"], ["Marie Curie_93", "Blue-Bob_94"]
    for n, week in enumerate((week1, week2), 1):
        names = {f"{name}_assignsubmission_file_/problem.py": term.right for name in week}
        run = term.grade(write(tmp_path / f"week{n}", names), only=f"0{n}")
    assert run.messages[1:] == ["moodle:94,moodle:8,Blue-Bob"]


def test_the_mark_of_a_file_replaces_the_zero_for_a_missing_file(school: Any) -> None:
    (school.folder / "ada/01-doubling/problem.py").unlink()
    school.hand_in("Ada hw", school.right)
    school.grade()
    assert school.gradebook()["ada"] == "0"
    for name in ("ada", "Ada hw"):
        shutil.rmtree(school.folder / name)
    run = school.grade(people={"Ada hw": "ada"})
    assert school.gradebook() == {"ada": "4", "bob": "0"}
    (joined,) = (str(c) for c in run.news.changes if c.name == "Ada hw")
    assert joined.endswith(": 01-doubling 4 -> none (combined with ada)")


@pytest.mark.parametrize(
    ("people", "why"),
    [
        ({"bob": "ada"}, "'bob' and 'ada' submitted the same problem"),
        ({"bob": "eve"}, "there is no student called 'eve'"),
        ({"bob": "eve  lee"}, "called 'eve  lee'"),
        ({"task one": "01-dubling"}, "there is no student called '01-dubling'"),
    ],
)
def test_invalid_lines_of_names_are_reported(school: Any, people: dict[str, str], why: str) -> None:
    run = school.grade(people=people)
    assert school.gradebook() == {"ada": "4", "bob": "0"}
    assert any(why in line for line in about_book(run))


def test_the_command_grades_one_student_alone(school: Any) -> None:
    school.hand_in("王芳", school.wrong)
    school.grade()
    for name in ("ada", "bob", "王芳"):
        school.hand_in(name, "def double(x): return 5 * x")
    said = school.command("--only", "王芳", "--only", "ada")
    assert "2 submissions graded, 1 as before." in said
    assert sorted(school.names())[0] == "ada"
    assert len(school.names()) == 2
    assert "Missing" not in said
    assert "Did you mean 'bob'?" in school.command("--only", "ada", "--only", "bib", status=2)


# Harmful names


ODD = ["=cmd|' C calc'!A0", "＝1+1", "a\u202eb", "line\nend", "نیک\u200cآیین", "\x1b[2J", "<b>&"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't allow such names")
def test_names_are_data_in_every_report(school: Any) -> None:
    odd = [*ODD, os.fsdecode(b"\xff\xfe")]
    for name in odd:
        school.hand_in(name, school.right)
    school.grade()
    assert school.grade().graded == 0
    rows = school.rows()
    assert len(rows) == len(odd) + 2
    names = [row["submission"] for row in rows.values()]
    assert {"'=cmd|' C calc'!A0", "'＝1+1", "a\ufffdb", "line end", "نیک\u200cآیین"} <= set(names)
    for path in school.out.rglob("*"):
        if path.is_file():
            shown = path.read_text(encoding="utf-8")
            assert not set(shown) & {"\u202e", "\x1b"}, path
            assert "<b>&" not in shown or path.suffix in {".csv", ".json"}, path


# Names in the gradebook


@pytest.fixture
def odd_names(school: Any) -> Any:
    """Create a class in which two names differ only in capital letters, and one is a formula."""
    for name in ("AdaLovelace", "Kim Lee", "kim lee", "=1+1"):
        school.hand_in(name, school.wrong)
    school.grade()
    return school


def test_the_gradebook_has_readable_names_and_exact_identities(odd_names: Any) -> None:
    assert (odd_names.out / "gradebook.csv").read_bytes().startswith(codecs.BOM_UTF8)
    names = {row["identity"]: row["submission"] for row in odd_names.rows().values()}
    assert names["AdaLovelace"] == "AdaLovelace"
    assert names["'=1+1"] == "'=1+1"
    assert re.fullmatch(r"Kim Lee \([0-9a-f]{4}\)", names["Kim Lee"])
    assert re.fullmatch(r"kim lee \([0-9a-f]{4}\)", names["kim lee"])
    texts = [odd_names.command(), (odd_names.out / "index.html").read_text(), str(names)]
    for name in names.values():
        assert name.removeprefix("'") in texts[0]
    assert not any(re.search(r"(?<!/)\b\w+~[0-9a-f]{16}(?!\.html)", text) for text in texts)


@pytest.mark.parametrize("column", ["submission", "identity"])
def test_names_from_the_gradebook_work_in_its_folder(odd_names: Any, column: str) -> None:
    head, called = "submission,problem,mark,reason\n", [*odd_names.rows(column)]
    odd_names.write_book("corrections.csv", head + "".join(f"{n},01,3,why\n" for n in called))
    odd_names.grade()
    assert {*odd_names.gradebook().values()} == {"3"}
    odd_names.write_book("names.csv", f"found,means\nzoe,{called[0]}\n")
    assert about_book(odd_names.grade()) == []


def test_an_ambiguous_name_is_an_error_with_both_identities(odd_names: Any) -> None:
    odd_names.write_book("roster.csv", "id,name\nada,Kim\nbob,Kim\n")
    odd_names.grade()
    odd_names.write_book("names.csv", "found,means\nzoe,Kim\n")
    said = odd_names.command(status=2)
    assert "names.csv: 'Kim' may refer to ada and bob." in said
    assert "'Kim' may refer to ada and bob." in odd_names.command("--dry-run", status=2)
