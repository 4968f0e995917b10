"""Grading a class repeats no work and keeps valid results."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from grader.grade.previous import load_previous, plan
from grader.grade.provenance import common_provenance
from grader.grade.settings import Settings
from grader.reports.class_table import about_run
from tests.conftest import add_problem


def test_only_new_submissions_are_graded_again(school: Any) -> None:
    assert school.grade().graded == 2
    before = (school.out / "gradebook.csv").read_bytes()
    again = school.grade()
    assert (again.graded, school.names(), again.news.changes) == (0, [], [])
    assert (school.out / "gradebook.csv").read_bytes() == before
    school.hand_in("bob", school.right)
    run = school.grade()
    assert school.names() == ["bob"]
    assert [str(change) for change in run.news.changes] == [
        "bob: 01-doubling 0 -> 4 (submission changed)"
    ]
    assert school.gradebook() == {"ada": "4", "bob": "4"}


def test_only_the_problem_that_changed_is_graded_again(school: Any) -> None:
    school.grade()
    add_problem(school.course.root, "02-doubling")
    previous = load_previous(school.out / "results")
    common = common_provenance(school.course, Settings())
    ada, _ = school.submissions()
    found = plan(ada, previous, common, fresh=False)
    assert (list(found.kept), found.reasons) == (["01-doubling"], {"02-doubling": "new"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("problems/01-doubling/test_doubling.py", "tests changed"),
        ("problems/01-doubling/probe.py", "tests changed"),
        ("problems/01-doubling/fingerprints.json", ""),
        ("problems/worked_example.py", "tests changed"),
        ("solutions/01-doubling/problem.py", "tests changed"),
        ("problems/01-doubling/README.md", ""),
    ],
)
def test_changed_tests_are_run_again(school: Any, file: str, why: str) -> None:
    tests = school.course.problems()[0].test_file
    tests.write_text("import worked_example\n" + tests.read_text())
    (school.course.root / "problems/worked_example.py").touch()
    school.grade()
    with (school.course.root / file).open("a") as changed:
        changed.write("\n")
    school.grade()
    assert school.names() == (["ada", "bob"] if why else [])
    data = json.loads((school.out / "results/ada.json").read_text())
    assert data["problems"][0]["reason"] == (why or "new")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"seed": 1}, "seed changed"),
        ({"call_seconds": 3.0}, "limits changed"),
        ({"isolation": "process"}, "isolation changed"),
        ({"isolation": "sandbox"}, ""),
    ],
)
def test_changed_settings_cause_new_grading(
    school: Any, settings: dict[str, object], why: str
) -> None:
    school.grade()
    school.grade(settings=settings)
    assert school.names() == (["ada", "bob"] if why else [])


def test_a_changed_grader_causes_new_grading(school: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    school.grade()
    monkeypatch.setattr("grader.grade.provenance.code_sha256", lambda: "another")
    school.hand_in("bob", "def double(x): return 4 * x")
    school.grade()
    data = json.loads((school.out / "results/bob.json").read_text())
    assert data["problems"][0]["reason"] == "submission changed, grader changed"


def test_internal_errors_are_not_kept(school: Any) -> None:
    for name in ("ada", "bob"):
        school.hand_in(name, "fault")
    school.grade()
    school.hand_in("ada", school.right)
    school.grade()
    assert school.gradebook() == {"ada": "4", "bob": ""}
    school.grade()
    assert school.names() == ["bob"]


def test_missing_students_are_listed_and_kept(school: Any) -> None:
    school.hand_in("eve", school.right)
    school.grade()
    shutil.rmtree(school.folder / "bob")
    run = school.grade()
    assert run.news.missing == ["bob"]
    assert "Missing in this run, so their marks are unchanged: bob." in about_run(run)
    assert school.gradebook() == {"ada": "4", "bob": "0", "eve": "4"}
    (school.out / "results/bob.json").unlink()
    school.grade()
    assert school.gradebook() == {"ada": "4", "eve": "4"}


def test_grading_one_student_again_changes_no_other_result(school: Any) -> None:
    school.hand_in("eve", school.wrong)
    school.grade()
    before = {p: p.read_bytes() for p in school.out.rglob("*") if p.is_file()}
    school.hand_in("eve", school.right)
    run = school.grade(school.folder / "eve")
    assert (school.names(), run.news.missing) == (["eve"], [])
    assert school.gradebook() == {"ada": "4", "bob": "0", "eve": "4"}
    after = {p: p.read_bytes() for p in school.out.rglob("*") if p.is_file()}
    changed = {p.relative_to(school.out).as_posix() for p in after if before[p] != after[p]}
    # All pages of the instructor change, as they compare each student with the class.
    changed = {name for name in changed if not name.startswith("instructor/")}
    own = {"results/eve.json", "feedback/eve.html"}
    assert changed == {"gradebook.csv", "index.html", *own}


def test_reports_inside_the_class_are_refused(school: Any) -> None:
    school.out = school.folder / "reports"
    assert "Choose a folder next to it" in school.command(status=2)
    assert not school.out.exists()


def test_the_number_of_graded_submissions_is_reported(school: Any) -> None:
    assert "2 submissions graded." in school.command()
    school.hand_in("ada", school.wrong)
    assert "1 submission graded, 1 as before." in school.command(path=school.folder / "ada")
    assert "0 submissions graded, 2 as before." in school.command()
