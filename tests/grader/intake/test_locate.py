"""A file is found in any folder, and under the names that people and browsers give it."""

from __future__ import annotations

import pytest

from tests.grader.intake.uploads import (
    FILE,
    ID,
    OTHER,
    RIGHT,
    WRONG,
    Take,
    source,
    zip_file,
)

OWN_NAMES = [
    "problem (1).py",
    "problem-1.py",
    "problem - Copy.py",
    "Problem.py",
    "problem.py.py",
    "problem_v2.py",
    "problem1.py",
    "01-doubling(1).py",
    "hw1.py",
    "11111111.py",
    "solution.py",
    "main.py",
]


@pytest.mark.parametrize("place", ["", f"{ID}/final/", f"hw/problems/{ID}/"])
@pytest.mark.parametrize("name", OWN_NAMES)
def test_the_only_python_file_is_read_as_the_given_problem(
    take_one: Take, place: str, name: str
) -> None:
    files = {f"ada/{place}{name}": RIGHT, f"ada/{OTHER}/problem.py": WRONG}
    ada, _ = take_one(files | {f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert any(name in note for note in ada.notes)


@pytest.mark.parametrize("name", OWN_NAMES)
def test_the_only_python_file_in_a_problems_folder_is_read(take: Take, name: str) -> None:
    ada, _ = take({f"ada/{ID}/{name}": RIGHT, f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) == RIGHT
    assert any(name in note for note in ada.notes)


KINDS = {
    "a notebook": b'{"cells": [], "metadata": {}, "nbformat": 4}',
    "an archive or an office document": zip_file({"word/document.xml": b""}),
    "an office document": b"\xd0\xcf\x11\xe0\xa1\xb1",
    "a web page": b"\xef\xbb\xbf<!DOCTYPE html>\n<html>",
    "a PDF document": b"%PDF-1.7",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_different_kind_of_file_is_reported(take_one: Take, kind: str) -> None:
    ada, _ = take_one({"ada/problem.py": KINDS[kind], f"bea/{FILE}": RIGHT}).submissions
    assert (source(ada), ada.files[ID].bad) == (None, True)
    assert ada.files[ID].reason == f"problem.py in {ID} is {kind} and not a Python file."


def test_a_file_with_a_dictionary_is_python(take_one: Take) -> None:
    ada, _ = take_one({"ada/problem.py": b'{"cells": 1}\n', f"bea/{FILE}": RIGHT}).submissions
    assert source(ada) is not None
