r"""GitHub and VS Code pass the formulas of all documents to TeX unchanged.

GitHub applies Markdown to the text between dollars before TeX reads it. Markdown removes the first
backslash of `\\`, `\,`, `\_` and similar, except of a `\\` at the end of a line, which GitHub
keeps. In some places it reads `_` and `*` as emphasis. VS Code passes formulas to TeX unchanged. So
a formula must be written in such a way that Markdown does not change it.
"""

from __future__ import annotations

import html
import re

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
    found = FORMULA.finditer(CODE.sub("", text))
    return [match["block"] or match["line"] for match in found]


def by_github(formula: str) -> str:
    """Return the text that GitHub passes to TeX."""
    shown = MarkdownIt("commonmark").render(f"$${ROW_END.sub(SAVED, formula)}$$")
    formula = html.unescape(shown).removeprefix("<p>$$").removesuffix("$$</p>\n")
    return formula.replace(SAVED, "\\\\")


def by_tex(formula: str) -> str:
    """Return a formula as MathML. Raise an exception for an unknown command."""
    drawn = convert(formula)
    assert "\\" not in drawn, drawn
    return drawn


FORMULAS = [
    pytest.param(formula, id=f"{path.relative_to(ROOT)}-{number}")
    for path in DOCUMENTS
    for number, formula in enumerate(formulas(path.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_is_the_same_on_github(formula: str) -> None:
    assert by_github(formula) == formula
    rows = formula.count("\\\\") + formula.count(r"\begin{")
    assert by_tex(by_github(formula)).count("<mtr>") == rows


def test_the_matrices_are_found() -> None:
    matrices = [param.values[0] for param in FORMULAS if "matrix}" in str(param.values[0])]
    assert len(matrices) >= 4


@pytest.mark.parametrize(
    ("formula", "handed_on"),
    [
        (r"\begin{matrix} 1 \\ 2 \end{matrix}", r"\begin{matrix} 1 \ 2 \end{matrix}"),
        ("1 \\\\\n2", "1 \\\\\n2"),
        (r"c^2\,x", "c^2,x"),
        (r"\text{head\_dim}", r"\text{head_dim}"),
        (r"{a}_b = c_{d}", r"{a}<em>b = c</em>{d}"),
        ("a\n- b", "a</p>\n<ul>\n<li>b$$</li>\n</ul>\n"),
    ],
)
def test_what_github_does(formula: str, handed_on: str) -> None:
    assert by_github(formula) == handed_on
