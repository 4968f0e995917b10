"""Each problem's README has the parts that a student looks for, in the same order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course import Problem, own_course

READMES = [problem.folder / "README.md" for problem in own_course().problems()]
PARTS = [
    "Start here",
    "What you will learn",
    "Background",
    "A worked example",
    "Predict, then run",
    "Your task",
    "Rules that the tests enforce",
    "Hints",
    "Common pitfalls",
    "How to test",
    "Concepts",
    "Resources",
    "Next step",
]

each_readme = pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)


def part(readme: Path, title: str) -> str:
    return readme.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@each_readme
def test_its_parts(readme: Path) -> None:
    found = re.findall(r"^## (.*)$", readme.read_text(encoding="utf-8"), re.MULTILINE)
    assert [title for title in found if title != "Train it"] == PARTS


FOLD = re.compile(r"<details>\n<summary>.*?</details>", re.DOTALL)
PICTURE = re.compile(r"^!\[", re.MULTILINE)


@each_readme
def test_rules_are_folded(readme: Path) -> None:
    """So that one sees the hints below them."""
    rules = part(readme, "Rules that the tests enforce")
    assert FOLD.search(rules)
    assert not re.search(r"^- ", FOLD.sub("", rules), re.MULTILINE)


@each_readme
def test_pictures_stand_where_their_idea_is_explained(readme: Path) -> None:
    explained = part(readme, "Background") + part(readme, "Train it")
    assert PICTURE.search(explained)
    assert PICTURE.findall(readme.read_text(encoding="utf-8")) == PICTURE.findall(explained)


DRAWN = [readme for readme in READMES if readme.parent.name[:2] in ("03", "05", "06", "07", "09")]
SHAPE = re.compile(r"""-->(?:\|"[^"|]*\(.*?\)[^"|]*"\|)?""")


@pytest.mark.parametrize("readme", DRAWN, ids=lambda path: path.parent.name)
def test_its_diagram_has_shapes_on_its_arrows(readme: Path) -> None:
    """GitHub draws it. Quoted text may have any sign in it; a bare bracket would break it."""
    (diagram,) = re.findall(r"```mermaid\n(.*?)```", part(readme, "Background"), re.DOTALL)
    assert diagram.startswith("flowchart TD\n")
    arrows = SHAPE.findall(diagram)
    assert sum("(" in arrow for arrow in arrows) >= len(arrows) - 5
    assert re.fullmatch(r"[\w\s\[\]()|>-]+", re.sub(r'"[^"\n]*"', "", diagram))
    named = set(re.findall(r"(\w+)(?:\[|\(\()", re.sub(r'"[^"\n]*"', "", diagram)))
    used = set(re.findall(r"^ +(\w+)|(?:>|\|) (\w+)", diagram, re.MULTILINE))
    assert {name for pair in used for name in pair if name} <= named


@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_its_head_says_what_the_manifest_does(problem: Problem) -> None:
    """The audit compares the rest of it."""
    title, _, line, *_ = (problem.folder / "README.md").read_text(encoding="utf-8").splitlines()
    assert title == f"# {problem.id[:2]} · {problem.entry.title}"
    part = f"Part {problem.part.id} · " if problem.part.optional else ""
    assert line.startswith(f"{part}Difficulty: ")


@each_readme
def test_start_here_has_three_steps(readme: Path) -> None:
    assert re.findall(r"^(\d)\. ", part(readme, "Start here"), re.MULTILINE) == ["1", "2", "3"]


@each_readme
def test_the_prediction_is_in_numbers_and_its_answer_is_folded(readme: Path) -> None:
    text = part(readme, "Predict, then run")
    question, fold, answer = text.partition("<details>\n<summary>The numbers</summary>\n\n")
    assert "?" in question
    assert fold
    assert re.search(r"\d", answer)
    assert text.rstrip().endswith("</details>")


@each_readme
def test_what_a_file_may_use_is_said_in_a_line(readme: Path) -> None:
    assert (
        "`problem.py` is graded by itself: use Python, `torch` and `numpy`, but no other file, no "
        "thread, no network and no `sys.path`." in part(readme, "Your task")
    )


@each_readme
def test_every_fold_is_closed(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    assert text.count("<details>\n<summary>") == text.count("\n</details>\n")
    assert text.count("<details>") == text.count("</summary>\n\n")
