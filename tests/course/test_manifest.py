"""The content of `course.toml` is checked, and commands find their course."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from grader import cli, course
from grader.course import COURSE_VARIABLE, Course, own_course
from grader.errors import CourseError, UsageError

ERRORS = {
    "unknown key": ('title = "A small course"', 'titel = "A"'),
    "missing key": ('title = "A small course"', ""),
    "no choice of name": ("[[parts]]", 'name = "never"\n[[parts]]'),
    "no choice of values": ("[[parts]]", 'values = "jax"\n[[parts]]'),
    "wrong type": ("[[parts]]", "name = true\n[[parts]]"),
    "no parts": ("[[parts]]", "[[part]]"),
    "a list for a table": ("[students]", "[[students]]"),
    "text for points": ("points = 4", 'points = "4"'),
    "no points": ("points = 4\n", ""),
    "unknown part": ('part = "one"', 'part = "three"'),
    "one number of minutes": ("minutes = [5, 5]", "minutes = [5]"),
    "no points at all": ("points = 4", "points = 0"),
    "NaN for points": ("points = 4", "points = nan"),
    "too many points": ("points = 4", "points = 1e9"),
    "minutes out of order": ("minutes = [5, 5]", "minutes = [6, 5]"),
    "too many minutes": ("minutes = [5, 5]", "minutes = [5, 1_000_000]"),
    "two parts of one id": ('id = "two"', 'id = "one"'),
    "id of a part": ('id = "two"', 'id = "Part 2"'),
    "id of a problem": ('id = "01-doubling"', 'id = "doubling"'),
    "unknown key of a problem": ("points = 4", "points = 4\nlevel = 3"),
    "unknown key of students": ("[students]", "[students]\npages = 3"),
    "no TOML": ("[[parts]]", "[[parts"),
}
"""A text of `course.toml` and its replacement, for each kind of error."""


@pytest.mark.parametrize("name", ERRORS)
def test_a_message_names_file_place_and_key(
    small_course: Course, snapshot: SnapshotAssertion, name: str
) -> None:
    path = small_course.root / "course.toml"
    text = path.read_text(encoding="utf-8")
    old, new = ERRORS[name]
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(CourseError) as error:
        small_course.problems()
    assert str(error.value).replace(str(path), "course.toml") == snapshot


def test_a_missing_manifest_is_reported(small_course: Course) -> None:
    (small_course.root / "course.toml").unlink()
    with pytest.raises(CourseError, match=r"course.toml is missing"):
        small_course.problems()


def test_a_problem_folder_without_an_entry_is_reported(small_course: Course) -> None:
    (small_course.root / "problems/02-halving").mkdir()
    with pytest.raises(CourseError, match=r"has no \[\[problems\]\] entry for 02-halving"):
        small_course.problems()


def test_a_changed_manifest_is_read_again(small_course: Course) -> None:
    path = small_course.root / "course.toml"
    assert small_course.manifest.title == "A small course"
    path.write_text(path.read_text("utf-8").replace("A small course", "Another"), encoding="utf-8")
    assert small_course.manifest.title == "Another"


def test_a_command_uses_a_given_course(two_parts: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COURSE_VARIABLE, "")  # restores the variable after the test
    done = CliRunner().invoke(cli.app, ["--course", str(two_parts.root), "check"])
    assert "01-doubling" in done.output
    assert "softmax" not in done.output


def test_a_folder_without_a_course_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["--course", str(tmp_path), "check"])
    assert done.exit_code == 2
    assert "so it is not a course" in " ".join(done.output.split())


def test_an_installed_grader_uses_the_course_that_contains_the_working_folder(
    small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = small_course.root.parent / "site-packages/grader/course.py"
    monkeypatch.setattr(course, "__file__", str(installed))
    monkeypatch.chdir(small_course.root / "problems/01-doubling")
    assert own_course().root == small_course.root
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="grader --course DIR"):
        own_course()
