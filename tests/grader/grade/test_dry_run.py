"""`grade --dry-run` reports what a run would do and writes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.grader.intake.uploads import write


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()
    }


@pytest.fixture
def dry_run(school: Any) -> Any:
    """Return a function that starts a dry run and returns its output."""

    def run(*more: str) -> str:
        said = school.command("--dry-run", *more)
        assert school.names() == []
        return said

    return run


def test_a_first_run_is_described_and_creates_no_folder(school: Any, dry_run: Any) -> None:
    assert "A run would grade 2 submissions (problems: 2 new)." in dry_run()
    write(school.folder, {"eve/01.py": school.right, "eve/more.ipynb": ""})
    assert dry_run().count("more.ipynb") == 1
    assert "A run would grade 1 submission " in dry_run("--only", "ada")
    assert not school.out.exists()


def test_changes_are_described_and_nothing_is_written(school: Any, dry_run: Any) -> None:
    school.hand_in("eve", school.wrong)
    school.grade()
    lines = "submission,problem,mark,reason\neve,01,3,By hand\nkim,01,3,why\nbob,01,3,why\n"
    school.write_book("corrections.csv", lines)
    school.write_book("roster.csv", "id\nkim\n")
    school.hand_in("bob", school.right)
    write(school.folder, {"dan/a.py": school.right, "dan/b.py": school.wrong})
    before = files(school.out.parent)
    said = dry_run()
    assert files(school.out.parent) == before
    assert "would change: eve: 01-doubling 0 -> 3 (Corrected: By hand)" in said
    assert "corrections.csv, line 4: bob has submitted a new file for 01-doubling" in said
    assert "corrections.csv, line 2" not in said
    assert "has not been graded in" not in said
    assert "Would be graded again, so marks may change: bob." in said
    assert "The problem of 'a.py', 'b.py' is unknown" in said
    assert said.index("line 3, has no effect") > said.index("This was a dry run")
    school.grade()
    assert school.names() == ["bob", "dan"]
    assert school.gradebook()["eve"] == "3"


def test_marks_that_would_be_lost_are_listed(school: Any, dry_run: Any) -> None:
    school.hand_in("eve", school.right)
    school.grade()
    (school.out / "results/eve.json").unlink()
    shutil.rmtree(school.folder / "eve")
    school.hand_in("bob", school.right)
    (school.out / "results/ada.json").write_text("{")
    said = dry_run()
    assert "would change: eve: 01-doubling 4 -> none (there is no longer a result)" in said
    assert "results/ada.json is damaged and was ignored" in said
    assert "ada: 01-doubling 4 -> none" not in said
    assert "bob: 01-doubling" not in said


def test_roster_messages_are_the_same_as_in_a_run(school: Any, dry_run: Any) -> None:
    school.grade()
    for name in ("Kim-Lee", "kim_lee", "eve"):
        school.hand_in(name, school.wrong)
    school.write_book("roster.csv", "name\nada\nKim Lee\nZoe\n")
    lines = [
        "Roster entries that may match several submissions: Kim Lee.",
        "Not on the roster: Kim-Lee, bob, eve, kim_lee.",
        "New since the last run: Kim-Lee, eve, kim_lee.",
        "On the roster, without a submission: Zoe.",
    ]
    assert [line in dry_run() for line in lines] == [True] * 4
    said = school.command()
    assert [line in said for line in lines] == [True] * 4


def test_bare_files_of_other_problems_do_not_count_for_this_problem(long_school: Any) -> None:
    for name, problem in {"ada": "06", "bob": "07", "eve": "06"}.items():
        long_school.hand_in(name, long_school.right, f"{problem}-doubling")
    long_school.grade(part="two")
    shutil.rmtree(long_school.folder / "eve")
    for more in (["--dry-run"], []):
        said = long_school.command("--part", "two", *more)
        assert "Missing in this run, so their marks are unchanged: eve." in said
