"""Files are found under the names that people and browsers give them, at every depth."""

from __future__ import annotations

import pytest

from grader.course import Course
from tests.grader.intake.uploads import (
    FILE,
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Take,
    by_name,
    source,
    zip_file,
)

OWN_NAMES = [
    "problem(1).py",
    "problem (1).py",
    "problem-1.py",
    "problem_1.py",
    "problem copy.py",
    "problem - Copy.py",
    "Problem.py",
    "problem.PY",
    "problem.py.py",
    "problem .py",
    "problem-final.py",
    "problem_v2.py",
    "problem1.py",
    "doubling (1).py",
    "01-doubling(1).py",
    "hw1.py",
    "11111111.py",
    "solution.py",
    "main.py",
]


@pytest.mark.parametrize(
    "place", ["", "hw/", f"{ID}/", f"{ID}/final/", f"hw/problems/{ID}/", "doubling/"]
)
@pytest.mark.parametrize("name", OWN_NAMES)
def test_the_only_python_file_is_the_given_problems(take_one: Take, place: str, name: str) -> None:
    files = {f"ada/{place}{name}": RIGHT, f"ada/{OTHER}/problem.py": WRONG}
    ada, _ = take_one(files | {f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert any(name in note for note in ada.notes)


@pytest.mark.parametrize("name", OWN_NAMES)
def test_the_only_python_file_in_a_problems_folder_is_read(take: Take, name: str) -> None:
    ada, _ = take({f"ada/{ID}/{name}": RIGHT, f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert any(name in note for note in ada.notes)


@pytest.mark.parametrize(
    "names",
    [
        ("hw1.py", "hw2.py"),
        ("problem (1).py", "problem-1.py"),
        (f"{ID}/problem (1).py", f"{ID}/problem copy.py"),
        ("first/problem.py", "second/problem.py"),
        ("first/01.py", "second/problem.py"),
        ("hw.zip", "hw2.zip"),
    ],
)
def test_two_that_are_as_clear_are_not_chosen_between(
    take_one: Take, names: tuple[str, ...]
) -> None:
    contents = dict(zip(names, (RIGHT, WRONG), strict=True))
    files = {
        f"ada/{name}": zip_file({FILE: content}) if name.endswith(".zip") else content
        for name, content in contents.items()
    }
    ada, _ = take_one(files | {f"bea/{FILE}": RIGHT}).submissions
    assert ada.files[ID].bad
    assert "which one counts can't be known, so keep one" in ada.files[ID].reason
    assert all(name in ada.files[ID].reason for name in names)


def test_two_of_one_content_are_one(take_one: Take) -> None:
    files = {"ada/problem (1).py": RIGHT, "ada/problem-1.py": RIGHT, f"bea/{FILE}": RIGHT}
    ada, _ = take_one(files).submissions
    assert source(ada) == RIGHT


@pytest.mark.parametrize("name", ["hw1.py", "problem (1).py", "doubling.py", f"{ID}/my.py"])
def test_what_is_written_goes_before_a_stub_and_an_empty_file(
    take_one: Take, two_problems: Course, name: str
) -> None:
    stub = (two_problems.root / "problems" / FILE).read_bytes()
    files = {f"ada/{FILE}": stub, f"bea/{FILE}": b" \n"}
    files |= {f"{who}/{name}": RIGHT for who in ("ada", "bea")}
    ada, bea = take_one(files).submissions
    assert (source(ada), source(bea)) == (RIGHT, RIGHT)


def test_a_stub_alone_is_found(take_one: Take, two_problems: Course) -> None:
    stub = (two_problems.root / "problems" / FILE).read_bytes()
    ada, bea = take_one({f"ada/{FILE}": stub, "bea/problem.py": b""}).submissions
    assert (source(ada), source(bea)) == (stub, b"")


@pytest.mark.parametrize(
    "name",
    [
        "02.py",
        "tripling.py",
        "problem_02 (1).py",
        "lab-02.py",
        "tripling_final.py",
        "2-tripling.py",
    ],
)
def test_a_file_that_is_called_after_another_problem_is_not_taken(
    take_one: Take, name: str
) -> None:
    ada, _ = take_one({f"ada/{name}": RIGHT, f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) is None
    assert f"'{name}' is for {OTHER}, which is not graded now." in ada.files[ID].reason


@pytest.mark.parametrize("name", ["2026-11-02.py", "hw 02-11-2026.py"])
def test_a_date_is_no_problems_number(take_one: Take, name: str) -> None:
    ada, _ = take_one({f"ada/{name}": RIGHT, f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) == RIGHT


def test_files_beside_problems_folders_are_read_and_those_in_other_folders_are_not(
    take_one: Take, two_problems: Course
) -> None:
    """The folder of a whole course has files that belong to no submission."""
    stub = (two_problems.root / "problems" / FILE).read_bytes()
    course = {f"problems/{FILE}": stub, "problems/shared/a.py": WRONG, "grader/b.py": WRONG}
    files = {f"ada/{name}": content for name, content in course.items()}
    files |= {f"bea/{name}": content for name, content in course.items()}
    ada, bea = take_one(files | {"ada/problems/mine.py": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert source(bea) == stub


def test_every_python_file_that_is_not_read_is_named(take: Take) -> None:
    files = {f"ada/{FILE}": RIGHT, f"ada/{ID}/helper.py": b"x", "ada/old/doubling.py": WRONG}
    files |= {"ada/scratch.py": b"y", f"ada/{ID}/test_x.py": b"z", f"ada/{ID}/explore.py": b"z"}
    ada, _ = take(files | {f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert ada.notes == [f"Not read: '{ID}/helper.py', 'old/doubling.py', 'scratch.py'."]


KINDS = {
    "a notebook": b'{"cells": [], "metadata": {}, "nbformat": 4}',
    "an archive or an office document": zip_file({"word/document.xml": b""}),
    "an office document": b"\xd0\xcf\x11\xe0\xa1\xb1",
    "a web page": b"\xef\xbb\xbf<!DOCTYPE html>\n<html>",
    "a PDF document": b"%PDF-1.7",
}


@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_of_file_is_named_as_such(take_one: Take, kind: str) -> None:
    ada, _ = take_one({"ada/problem.py": KINDS[kind], f"bea/{FILE}": RIGHT}).submissions
    assert (source(ada), ada.files[ID].bad) == (None, True)
    assert ada.files[ID].reason == f"problem.py in {ID} is {kind}, and no Python file."


def test_a_dictionary_is_code(take_one: Take) -> None:
    ada, _ = take_one({"ada/problem.py": b'{"cells": 1}\n', f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) is not None


def test_rows_say_what_is_in_folders_of_problems_without_the_option(take: Take) -> None:
    found = by_name(take({f"ada/{ID}/Problem.py": RIGHT, f"bea/{ID}/solution.py": RIGHT}))
    assert found["ada"].notes == [f"'{ID}/Problem.py' was read as {ID}."]
    assert found["bea"].notes == [f"'{ID}/solution.py' was read as {ID}."]
