"""The project's prose contains few phrases that make readers stumble."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PHRASES = {
    r"tell whether": "return whether",
    r"hangs? on": "depends on",
    r"speaks? (?:for|of|against)": "suggests, mentions, contradicts",
    r"what (?:comes|came) of": "the result",
    r"(?:who|what|which)ever": "anyone who, any",
    r"(?:no|some|every|any)body": "no one, a student",
    r"(?:is|are|was|were|be) told": "reported, shown",
    r"as it (?:stands|came)": "unchanged",
    r"of (?:its|their|his|her|your|a) own": "separate, its",
    r"one'?s own": "your",
    r"beside (?:the|it|them|this|that)": "next to, in addition to",
    r"(?:says?|say) so": "is reported",
    r"stands? (?:for|in|beside|behind)": "represents, is in",
    r"anew|afresh|astray": "again, wrong",
}
"""Patterns of phrases to avoid, and their replacements."""

ANY_PHRASE = re.compile("|".join(PHRASES), re.IGNORECASE)

ALLOWED = 2.0
"""The accepted number of these phrases per 1,000 words of a folder, as some uses are fine."""

FOLDERS = {
    "grader": "grader",
    "tests": "tests",
    "problems": "problems",
    "solutions": "solutions",
    "documents": "docs",
    "students": "students",
}


def prose(path: Path) -> Iterator[str]:
    """Yield the lines of prose in a Python, Markdown or `.edits` file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from re.sub(r"```.*?```", "", source, flags=re.DOTALL).splitlines()
    elif path.suffix == ".edits":
        yield from (line for line in source.splitlines() if line.startswith("#"))
    else:
        yield from re.findall(r"(?:^ *|  )(# .*)", source, re.MULTILINE)
        waiting: list[ast.stmt | ast.Module] = [ast.parse(source)]
        while waiting:  # statements such as `if` contain no docstrings
            node = waiting.pop()
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield from (ast.get_docstring(node) or "").splitlines()
                waiting += node.body


def words_and_findings(lines: Iterator[str]) -> tuple[int, list[str]]:
    """Return the number of words, and a list of findings.

    A finding is a line with a phrase to avoid, and the phrase's replacement.
    """
    words, found = 0, []
    for line in lines:
        words += len(line.split())
        if not ANY_PHRASE.search(line):
            continue
        for phrase, instead in PHRASES.items():
            if re.search(rf"\b(?:{phrase})\b", line, re.IGNORECASE):
                found.append(f"{line.strip()} -> {instead}")
    return words, found


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_prose_contains_few_phrases_to_avoid(folder: str) -> None:
    paths = [
        path
        for kind in ("*.py", "*.md", "*.edits")
        for path in sorted((ROOT / folder).rglob(kind))
        if "attacks/files" not in path.as_posix() and path != Path(__file__)
    ]
    words, found = words_and_findings(line for path in paths for line in prose(path))
    assert words > 1000
    assert len(found) <= ALLOWED * words / 1000, "\n".join(found)
