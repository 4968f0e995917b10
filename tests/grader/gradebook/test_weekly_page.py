"""The example files on the page about the weekly workflow are valid."""

from __future__ import annotations

import re
from pathlib import Path

from grader.course import own_course
from grader.gradebook.folder import GradebookFolder
from grader.gradebook.late_policy import read_late_policy
from grader.gradebook.lines import Correction, read_criteria, read_lines
from tests.grader.gradebook.built import adjusted, problem, result


def example_file(first_line: str) -> str:
    """Return the block of the page that begins with `first_line`."""
    text = (own_course().root / "docs/weekly.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```text\n({re.escape(first_line)}.*?)^```", text, re.M | re.S)
    return str(found)


def test_the_example_corrections_are_read(folder: Path) -> None:
    (folder / "corrections.csv").write_text(
        example_file("submission,problem,test"), encoding="utf-8"
    )
    found = read_lines(folder, Correction)
    assert [line.value for line in found] == [20, 0.5, None]


def test_the_example_points_by_hand_are_read(folder: Path) -> None:
    text = example_file("submission,problem,criterion")
    (folder / "criteria.csv").write_text(text, encoding="utf-8")
    found = read_criteria(folder)
    assert [line.value.points for line in found] == [4, 5]


def test_the_example_late_policy_is_applied(folder: Path) -> None:
    (folder / "late.toml").write_text(example_file("per ="), encoding="utf-8")
    assert read_late_policy(folder / "late.toml")
    late = problem("03-scaled-attention", 20, 25, handed_in="2026-11-04T12:00:00+01:00")
    kim, ada = result("kim", late), result("ada", late, full_name="Ada Lovelace")
    chen = result("chen", late, identity="canvas:1004")
    found, _ = adjusted([kim, ada, chen], GradebookFolder(folder))
    assert [r.points for r in found] == [16, 20, 20]
