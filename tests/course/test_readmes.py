"""Each README has steps. A step explains an idea, and has a function to write and a command."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from grader.course import STUB_LINE, Problem, own_course

ROOT = own_course().root
PROBLEMS = own_course().problems()
READMES = [problem.folder / "README.md" for problem in PROBLEMS]
MOST_WORDS = {"01": 1000, "02": 1100, "03": 900, "04": 1100, "05": 1300}
MOST_WORDS |= {"06": 1200, "07": 1500, "08": 1000, "09": 1300, "10": 1600}
"""The word limit of each README. The limits sum to 12,000."""

each_readme = pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)


def word_count(text: str) -> int:
    """Return the number of words, as `wc -w` does."""
    return len(text.split())


def sections(readme: Path) -> dict[str, str]:
    """Return the text of each section by its heading."""
    parts = re.split(r"^## (.*)\n", readme.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@each_readme
def test_a_readme_has_the_required_parts_and_is_short(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    assert word_count(text) <= MOST_WORDS[readme.parent.name[:2]]
    assert word_count(text.partition("```bash")[0]) <= 150
    assert "](hints.md)" in text
    assert "uv run python explore.py" in text
    assert "](../../docs/robust.md)" in sections(readme)["Rules that the tests enforce"]
    assert text.count("<details>\n<summary>") == text.count("\n</details>\n")
    assert text.count("<details>") == text.count("</summary>\n\n")
    titles = [title for title in sections(readme) if title != "Train it"]
    steps = [title for title in titles if title.startswith("Step ")]
    assert [int(title[5]) for title in steps] == [*range(1, len(steps) + 1)]
    assert titles == [*steps, "Predict, then run", "Rules that the tests enforce", "Next"]


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("problems/*/more.md")), ids=lambda path: path.parent.name
)
def test_the_page_more_is_short(page: Path) -> None:
    assert word_count(page.read_text(encoding="utf-8")) <= 600
    assert "](more.md)" in page.with_name("README.md").read_text(encoding="utf-8")


@each_readme
def test_each_step_has_a_command_and_the_steps_name_all_parts_of_the_stub(readme: Path) -> None:
    steps = [text for title, text in sections(readme).items() if title.startswith("Step ")]
    drawings = re.compile(r"```(?!bash).*?```|\$\$.*?\$\$|^[|!][^\n]*$", re.DOTALL | re.MULTILINE)
    for text in steps:
        idea, command, _ = drawings.sub("", text).partition("```bash\nuv run pytest -k ")
        assert command
        assert word_count(idea) <= 140  # 120 for the idea, 20 for the function to write
    stub = readme.with_name("problem.py").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", "".join(steps), flags=re.DOTALL)
    named = {*re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose)))}
    to_write = [node for node in ast.parse(stub).body if STUB_LINE in ast.unparse(node)]
    assert {node.name for node in to_write if hasattr(node, "name")} <= named


@each_readme
def test_the_command_of_a_step_runs_some_but_not_all_visible_tests(readme: Path) -> None:
    """As pytest also matches file names, `-k block` would run all tests of 06."""
    (file,) = readme.parent.glob("test_*.py")
    visible = file.read_text(encoding="utf-8").partition("\n# --- hidden tests ---\n")[0]
    names = re.findall(r"^def (test_\w+)", visible, re.MULTILINE)
    for typed in re.findall(
        r"^uv run pytest -k (\S+|\".*\")$", readme.read_text("utf-8"), re.MULTILINE
    ):
        words = Expression.compile(typed.strip('"'))
        ran = [name for name in names if words.evaluate(lambda w, n=name: w in n or w in file.name)]
        assert 0 < len(ran) < len(names), typed


DRAWN = [readme for readme in READMES if readme.parent.name[:2] in ("03", "05", "06", "07", "09")]
SHAPE = re.compile(r"""-->(?:\|"[^"|]*\(.*?\)[^"|]*"\|)?""")


@pytest.mark.parametrize("readme", DRAWN, ids=lambda path: path.parent.name)
def test_the_diagram_has_shapes_on_its_arrows(readme: Path) -> None:
    """Labels are quoted, as an unquoted bracket is an error on GitHub."""
    (diagram,) = re.findall(r"```mermaid\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)
    assert diagram.startswith("flowchart TD\n")
    arrows = SHAPE.findall(diagram)
    assert sum("(" in arrow for arrow in arrows) >= len(arrows) - 5
    assert re.fullmatch(r"[\w\s\[\]()|>-]+", re.sub(r'"[^"\n]*"', "", diagram))
    named = set(re.findall(r"(\w+)(?:\[|\(\()", re.sub(r'"[^"\n]*"', "", diagram)))
    used = set(re.findall(r"^ +(\w+)|(?:>|\|) (\w+)", diagram, re.MULTILINE))
    assert {name for pair in used for name in pair if name} <= named


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)
def test_the_first_lines_agree_with_the_manifest(problem: Problem) -> None:
    """The audit compares the rest: the difficulty, the time and the points."""
    title, _, line, *_ = (problem.folder / "README.md").read_text(encoding="utf-8").splitlines()
    assert title == f"# {problem.id[:2]} · {problem.entry.title}"
    part = f"Part {problem.part.id} · " if problem.part.optional else ""
    assert line.startswith(f"{part}Difficulty: ")


@each_readme
def test_the_points_at_the_end_are_those_of_the_visible_tests(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    (visible,) = re.findall(r"\((\d+) for the tests that you see", text)
    assert {*re.findall(r"`(\d+) of (\d+) points", text)} <= {(visible, visible)}


@each_readme
def test_the_prediction_has_numbers_and_a_folded_answer(readme: Path) -> None:
    text = sections(readme)["Predict, then run"]
    question, fold, rest = text.partition("<details>\n<summary>The numbers</summary>\n\n")
    answer, end, _ = rest.partition("\n</details>\n")
    assert "?" in question
    assert fold
    assert end
    assert re.search(r"\d", answer)


def test_the_common_rules_fit_on_a_page() -> None:
    page = (ROOT / "docs/robust.md").read_text(encoding="utf-8")
    assert word_count(page) <= 500
    assert "`problem.py` is graded alone. It may use Python, `torch` and `numpy`" in page
