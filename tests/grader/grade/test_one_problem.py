"""If a class submits one problem after the other, the results of the earlier problems are kept."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from grader.grade.class_run import ClassRun
from grader.result import Policy
from tests.conftest import add_problem
from tests.grader.intake.uploads import write

OTHER = "02-doubling"


@pytest.fixture
def term(school: Any) -> Any:
    """Add a second problem, and a separate folder with its submissions."""
    add_problem(school.course.root, OTHER)
    write_second(school, ada=school.wrong, bob=school.right)
    return school


def write_second(term: Any, **sources: str) -> None:
    files = {f"{name}/problem.py": source for name, source in sources.items()}
    write(term.folder.with_name("second"), files)


def grade_second(term: Any, **options: object) -> ClassRun:
    return term.grade(folder=term.folder.with_name("second"), only="02", **options)


def rows(term: Any) -> dict[str, tuple[str, ...]]:
    """Return the points of both problems, the total and the maximum of each student."""
    columns = ("01-doubling", OTHER, "total", "max")
    return {name: tuple(row[column] for column in columns) for name, row in term.rows().items()}


def test_only_the_marks_of_the_given_problem_change(term: Any) -> None:
    """A missing submission of the other problem does not become 0 points."""
    run = grade_second(term)
    assert term.graded == [("ada", [OTHER]), ("bob", [OTHER])]
    assert rows(term) == {"ada": ("", "0", "0", "4"), "bob": ("", "4", "4", "4")}
    assert run.problems == [OTHER]
    assert "01-doubling" not in (term.out / "feedback/ada.html").read_text()
    assert "01-doubling" not in (term.out / "index.html").read_text()
    assert grade_second(term).graded == 0


def test_marks_of_other_problems_are_kept(term: Any) -> None:
    term.grade(only="01")
    both = {"ada": ("4", "0", "4", "8"), "bob": ("0", "4", "4", "8")}
    run = grade_second(term)
    assert term.graded == [("ada", [OTHER]), ("bob", [OTHER])]
    assert rows(term) == both
    assert (run.news.changes, run.news.missing) == ([], [])
    term.hand_in("bob", term.right)
    assert [str(change) for change in term.grade(only="01").news.changes] == [
        "bob: 01-doubling 0 -> 4 (submission changed)"
    ]
    assert term.graded == [("bob", ["01-doubling"])]
    assert rows(term) == both | {"bob": ("4", "4", "8", "8")}
    assert grade_second(term, fresh=True).graded == 2
    assert term.graded == [("ada", [OTHER]), ("bob", [OTHER])]
    assert rows(term) == both | {"bob": ("4", "4", "8", "8")}


def test_students_without_this_problem_keep_their_row(term: Any) -> None:
    term.grade(only="01")
    term.hand_in("eve", term.right)
    term.grade(only="01")
    shutil.rmtree(term.folder.with_name("second") / "bob")
    write_second(term, eve=term.wrong)
    run = grade_second(term)
    assert (run.news.missing, run.news.of_one_problem) == (["bob"], True)
    eve = {"eve": ("4", "0", "4", "8")}
    assert rows(term) == eve | {"ada": ("4", "0", "4", "8"), "bob": ("0", "", "0", "4")}
    path = term.out / "feedback/bob.html"
    path.write_text("old")
    grade_second(term, policy=Policy.FULL)
    assert path.read_text() != "old"


def test_an_internal_error_affects_only_its_problem(term: Any) -> None:
    term.grade(only="01")
    write_second(term, bob="fault")
    grade_second(term)
    assert rows(term)["bob"] == ("", "", "", "")
    write_second(term, bob=term.right)
    grade_second(term)
    assert term.graded == [("bob", [OTHER])]
    assert rows(term)["bob"] == ("0", "4", "4", "8")


def test_marks_from_different_inputs_are_reported(term: Any) -> None:
    term.grade(only="01")
    assert grade_second(term).outdated == {}
    with (term.course.root / "problems/01-doubling/test_doubling.py").open("a") as tests:
        tests.write("\n")
    run = grade_second(term, settings={"seed": 1, "isolation": "process"})
    assert run.outdated == {"01-doubling": ["isolation", "seed", "tests"]}
    assert rows(term)["ada"] == ("4", "0", "4", "8")
    assert term.grade(only="01").outdated == {OTHER: ["isolation", "seed"]}
    data = json.loads((term.out / "results/ada.json").read_text())
    assert data["isolation"] == "process"


def test_grading_all_problems_keeps_earlier_results_and_lists_missing_students(term: Any) -> None:
    for name, source in {"ada": term.wrong, "bob": term.right, "eve": term.right}.items():
        term.hand_in(name, source, OTHER)
    grade_second(term)
    shutil.rmtree(term.folder / "bob")
    run = term.grade()
    assert term.graded == [("ada", ["01-doubling"]), ("eve", ["01-doubling", OTHER])]
    assert (run.news.missing, run.news.of_one_problem) == (["bob"], False)
    assert list(rows(term)) == ["ada", "bob", "eve"]


def test_the_option_for_the_problem_is_requested(term: Any) -> None:
    """Without `--problem`, the marks of other problems would become zero."""
    grade_second(term)
    before = (term.out / "gradebook.csv").read_bytes()
    folder = term.folder.with_name("second")
    for path in (folder, folder / "bob"):
        for more in ([], ["--dry-run"]):
            said = term.command(*more, path=path, status=2)
            assert "name the problem, for example with --problem 01-doubling" in said
    assert (term.out / "gradebook.csv").read_bytes() == before
    write(folder, {f"ada/{OTHER}/problem.py": term.right})
    said = term.command(path=folder)
    assert "1 submission has a Python file of an unknown problem." in said
    before = (term.out / "gradebook.csv").read_bytes()
    write(folder, {"cem/problem.py": term.right})  # now most submissions name no problem
    assert "--problem 01-doubling" in term.command(path=folder, status=2)
    assert (term.out / "gradebook.csv").read_bytes() == before
