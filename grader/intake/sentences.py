"""Sentences about names that several files here say."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from grader.course import SUBMISSION_FILE
from grader.intake.did_you_mean import nearest_folder, nearest_problem
from grader.intake.problem_names import Problems, words_of
from grader.intake.survey import Role, Survey
from grader.text import quoted

NAMES_SHOWN = 3
"""How many names a sentence lists."""

CANDIDATES_SHOWN = 20
"""How many it lists if the student is to choose among them."""


A_NOTEBOOK = f"A notebook is not graded: what its code cells hold has to be in {SUBMISSION_FILE}."


def is_notebook(name: str) -> bool:
    """Tell whether a file is called as a notebook."""
    return name.lower().endswith(".ipynb")


def listed(names: Iterable[str], most: int = NAMES_SHOWN) -> str:
    """Return names as part of a sentence."""
    shown = sorted(names)
    more = len(shown) - most
    rest = [f"{more} more"] if more > 0 else []
    return " and ".join([*(quoted(name) for name in shown[:most]), *rest])


def for_another(name: str, problem: str) -> str:
    """Return a sentence about a name that tells a problem that is not looked for."""
    return f" {quoted(name)} is for {problem}, which is not graded now."


def meant(names: Iterable[str], problems: Problems) -> str:
    """Return a sentence about the first notebook, or file of another or nearly of a problem."""
    for name in names:
        if is_notebook(name):
            return f" {A_NOTEBOOK}"
        if (other := problems.of_file(name)) and other not in problems.sought:
            return for_another(name, other)
        if near := nearest_problem(words_of(name), problems.sought):
            return f" By {quoted(name)}, did you mean {near}? Then call it {near}.py."
    return ""


def misspelt(here: Survey, problems: Problems) -> list[str]:
    """Return a sentence about each folder whose name is nearly that of a problem looked for."""
    notes = (
        f"There is a folder {quoted(folder.name)}; did you mean {id}?"
        for folder in here.of(Role.FOLDER)
        if (id := nearest_folder(folder.name, problems.sought))
    )
    return [*islice(notes, NAMES_SHOWN)]
