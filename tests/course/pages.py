"""The pages of problems, and the tables on them."""

from __future__ import annotations

import re

from grader.course import Problem, own_course


def text_of(problem: Problem) -> str:
    """Return the README of a problem and its page more.md, if there is one."""
    pages = (problem.folder / name for name in ("README.md", "more.md"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages if page.is_file())


READMES = {problem.id[:2]: text_of(problem) for problem in own_course().problems()}
"""The README and the page more.md of each problem, by its number."""


def row(number: str, first: str) -> list[str]:
    """Find the first table row whose first cell is `first`, and return its other cells."""
    rows = re.findall(rf"^\| {re.escape(first)} \|(.*)\|$", READMES[number], re.MULTILINE)
    assert rows, first
    return [cell.strip() for cell in rows[0].split("|")]
