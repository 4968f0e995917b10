"""Corrections and the late policy in a run: applied each time, and nothing is graded for them."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from grader.errors import UsageError
from grader.grading import class_run
from grader.grading.previous import load_previous
from grader.reports.terminal import about_run

HEADER = "submission,problem,test,mark,reason\n"


def correct(school: Any, lines: str) -> None:
    school.out.mkdir(exist_ok=True)
    (school.out / "corrections.csv").write_text(HEADER + lines)


def test_a_correction_counts_at_every_run_and_nothing_is_graded_for_it(school: Any) -> None:
    school.grade()
    correct(school, "bob,01,,3,Only a slip\n")
    run = school.grade()
    assert school.names() == []
    assert [str(c) for c in run.changes] == ["bob: 01-doubling 0 -> 3 (Corrected: Only a slip)"]
    assert school.gradebook() == {"ada": "4", "bob": "3"}
    for ending in ("md", "html"):
        assert "Only a slip" in (school.out / f"feedback/bob.{ending}").read_text()
    stored = (school.out / "results/bob.json").stat().st_mtime_ns
    again = school.grade()
    assert (again.graded, again.changes) == (0, [])
    assert (school.out / "results/bob.json").stat().st_mtime_ns == stored


def test_a_correction_outlives_a_new_submission(school: Any) -> None:
    correct(school, "bob,01,,3,Only a slip\n")
    school.grade()
    school.hand_in("bob", "def double(x): return 5 * x")
    school.grade()
    assert (school.names(), school.gradebook()["bob"]) == (["bob"], "3")
    assert (school.out / "corrections.csv").read_text().endswith("Only a slip\n")


def test_what_is_taken_back_counts_no_more(school: Any) -> None:
    correct(school, "*,01,test_doubles,leave out,Broken\n")
    school.grade()
    rows = csv.DictReader((school.out / "gradebook.csv").read_text().splitlines())
    assert [row["max"] for row in rows] == ["0", "0"]
    (school.out / "corrections.csv").unlink()
    run = school.grade()
    assert [str(c) for c in run.changes] == [
        "ada: 01-doubling 0 -> 4 (no longer: Left out: Broken)"
    ]
    previous = load_previous(school.out / "results")
    assert [r.problems[0].adjustments for r in previous.results.values()] == [[], []]


def test_a_line_that_does_not_count_is_said_and_ends_nothing(school: Any) -> None:
    correct(school, "eve,01,,3,why\nbob,01,,3,why\n")
    run = school.grade()
    assert school.gradebook()["bob"] == "3"
    assert any("line 2, does not count" in text for text in about_run(run))


@pytest.mark.parametrize(("name", "text"), [("corrections.csv", "who\n"), ("late.toml", "per =")])
def test_a_file_that_cannot_be_read_is_said_before_anything_is_graded(
    name: str, text: str, school: Any
) -> None:
    school.out.mkdir()
    (school.out / name).write_text(text)
    with pytest.raises(UsageError, match=name):
        school.grade()
    assert school.names() == []


def test_a_run_that_was_killed_while_it_wrote_them_goes_on(
    school: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct(school, "*,01,,2,Half for all\nada,01,,3,why\n")
    save = class_run.save_result
    left = iter(range(3))  # two results as they are graded, and one that is adjusted

    def killed(*args: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return save(*args)

    monkeypatch.setattr(class_run, "save_result", killed)
    with pytest.raises(KeyboardInterrupt):
        school.grade()
    assert not (school.out / "gradebook.csv").exists()
    monkeypatch.setattr(class_run, "save_result", save)
    school.grade()
    assert school.names() == []
    assert school.gradebook() == {"ada": "3", "bob": "2"}
    stored = load_previous(school.out / "results").results
    assert {name: r.points for name, r in stored.items()} == {"ada": 3, "bob": 2}
