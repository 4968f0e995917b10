"""What `course.toml` says is checked when it is read, and which course a command works on."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader import cli, course
from grader.course import COURSE_VARIABLE, Course, own_course
from grader.errors import CourseError, UsageError


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('title = "A small course"', 'titel = "A"', "the top: 'titel' is not known"),
        ('title = "A small course"', "", "missing 1 required positional argument: 'title'"),
        (
            'title = "A small course"',
            'title = "A small course"\nname = "never"',
            "the top: 'name' should be 'seen again' or 'at once', and is 'never'",
        ),
        (
            'title = "A small course"',
            'title = "A small course"\nname = true',
            "the top: 'name' should be of kind str",
        ),
        ("points = 4", 'points = "4"', "problems, 01-doubling: 'points' should be of kind float"),
        ("points = 4", "points = true", "'points' should be of kind float, and is True"),
        ("points = 4\n", "", "problems, 01-doubling: missing 1 required .* 'points'"),
        ('part = "one"', 'part = "three"', "problems, 01-doubling: there is no part 'three'"),
        ("minutes = [5, 5]", "minutes = [5]", "'minutes' should be two whole numbers"),
        ("optional = true", 'optional = "yes"', "parts, two: 'optional' should be of kind bool"),
        ('id = "two"', 'id = "one"', "parts: one stands there twice"),
        ('id = "two"', 'id = "Part 2"', "parts: 'Part 2' should be of small letters"),
        ('id = "01-doubling"', 'id = "doubling"', "'doubling' should look like 01-name"),
        ("[[problems]]", "[[problem]]", "the top: 'problem' is not known"),
        (
            'title = "A small course"',
            'title = "A small course"\nvalues = "jax"',
            "the top: 'values' should be 'torch' or 'numpy', and is 'jax'",
        ),
        ("[[parts]]", "[[parts", "can't be read"),
    ],
)
def test_what_is_wrong_in_it_is_told_with_its_place(
    small_course: Course, old: str, new: str, told: str
) -> None:
    path = small_course.root / "course.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(CourseError, match=told) as error:
        small_course.problems()
    assert str(path) in str(error.value)


def test_it_says_when_mistakes_are_named(small_course: Course) -> None:
    path = small_course.root / "course.toml"
    assert not small_course.manifest.names_at_once
    path.write_text(f'name = "at once"\n{path.read_text("utf-8")}', encoding="utf-8")
    assert small_course.manifest.names_at_once


def test_a_course_without_one_is_told(small_course: Course) -> None:
    (small_course.root / "course.toml").unlink()
    with pytest.raises(CourseError, match=r"course.toml is missing"):
        small_course.problems()


def test_a_folder_that_it_does_not_name_is_no_problem_unseen(small_course: Course) -> None:
    (small_course.root / "problems/02-halving").mkdir()
    with pytest.raises(CourseError, match="says nothing of 02-halving"):
        small_course.problems()


def test_a_change_of_it_is_read(small_course: Course) -> None:
    path = small_course.root / "course.toml"
    assert small_course.manifest.title == "A small course"
    path.write_text(path.read_text("utf-8").replace("A small course", "Another"), encoding="utf-8")
    assert small_course.manifest.title == "Another"


def test_a_command_works_on_the_course_that_it_is_told(
    two_parts: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COURSE_VARIABLE, "")  # what the command sets is undone with it
    done = CliRunner().invoke(cli.app, ["--course", str(two_parts.root), "check"])
    assert "01-doubling" in done.output
    assert "softmax" not in done.output


def test_a_folder_that_is_no_course_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["--course", str(tmp_path), "check"])
    assert done.exit_code == 2
    assert "so it is no course" in " ".join(done.output.split())


def test_an_installed_grader_takes_the_course_around(
    small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = small_course.root.parent / "site-packages/grader/course.py"
    monkeypatch.setattr(course, "__file__", str(installed))
    monkeypatch.chdir(small_course.root / "problems/01-doubling")
    assert own_course().root == small_course.root
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="grader --course DIR"):
        own_course()
