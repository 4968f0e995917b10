r"""GitHub and VS Code pass the formulas of all documents to TeX unchanged.

GitHub applies Markdown to the text between dollars before TeX reads it. Markdown removes the first
backslash of `\\`, `\,`, `\_` and similar, but GitHub keeps a `\\` at the end of a line. In some
places, Markdown reads `_` and `*` as emphasis. VS Code passes formulas to TeX unchanged. So
a formula must be written in such a way that Markdown does not change it.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from latex2mathml.converter import convert
from markdown_it import MarkdownIt

from grader.course import own_course

ROOT = own_course().root
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "students/**/*.md", "problems/*/*.md")
    for path in ROOT.glob(pattern)
)
CODE = re.compile(r"^ *(```+).*?^ *\1|(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<!\\)\$(?P<line>[^$\n]+)\$", re.DOTALL)
ROW_END = re.compile(r"\\\\$", re.MULTILINE)
SAVED = "\N{PILCROW SIGN}"


def formulas(text: str) -> list[str]:
    """Return the texts between dollars, except in code."""
    matches = FORMULA.finditer(CODE.sub("", text))
    return [match["block"] or match["line"] for match in matches]


def after_markdown(formula: str) -> str:
    """Return the text that GitHub passes to TeX."""
    shown = MarkdownIt("commonmark").render(f"$${ROW_END.sub(SAVED, formula)}$$")
    formula = html.unescape(shown).removeprefix("<p>$$").removesuffix("$$</p>\n")
    return formula.replace(SAVED, "\\\\")


def mathml_of(formula: str) -> str:
    """Return a formula as MathML. Raise an exception for an unknown command."""
    mathml = convert(formula)
    assert "\\" not in mathml, mathml
    return mathml


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_github_does_not_change_the_formulas(path: Path) -> None:
    for formula in formulas(path.read_text(encoding="utf-8")):
        assert after_markdown(formula) == formula
        rows = formula.count("\\\\") + formula.count(r"\begin{")
        assert mathml_of(formula).count("<mtr>") == rows, formula


@pytest.mark.parametrize("formula", [r"c^2\,x", r"{a}_b = c_{d}"])
def test_a_change_by_github_is_detected(formula: str) -> None:
    assert after_markdown(formula) != formula
