"""The project's prose has few phrases that readers stumble over."""

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
"""What to avoid, and what to write instead."""

ANY_PHRASE = re.compile("|".join(PHRASES), re.IGNORECASE)

ALLOWED = 2.0
"""Phrases per 1,000 words of a folder; some of them are fine where they are."""

FOLDERS = {
    "grader": "grader",
    "tests": "tests",
    "problems": "problems",
    "solutions": "solutions",
    "documents": "docs",
    "students": "students",
}


def prose(path: Path) -> Iterator[str]:
    """Yield the comments and docstrings of Python, the lines of Markdown, the texts of edits."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from re.sub(r"```.*?```", "", source, flags=re.DOTALL).splitlines()
    elif path.suffix == ".edits":
        yield from (line for line in source.splitlines() if line.startswith("#"))
    else:
        yield from re.findall(r"(?:^ *|  )(# .*)", source, re.MULTILINE)
        waiting: list[ast.stmt | ast.Module] = [ast.parse(source)]
        while waiting:  # definitions in a statement such as `if` have no docstring here
            node = waiting.pop()
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield from (ast.get_docstring(node) or "").splitlines()
                waiting += node.body


def found_in(lines: Iterator[str]) -> tuple[int, list[str]]:
    """Return the number of words, and each line with a banned phrase and its replacement."""
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
def test_few_phrases_make_readers_stumble(folder: str) -> None:
    paths = [
        path
        for kind in ("*.py", "*.md", "*.edits")
        for path in sorted((ROOT / folder).rglob(kind))
        if "attacks/files" not in path.as_posix() and path != Path(__file__)
    ]
    words, found = found_in(line for path in paths for line in prose(path))
    assert words > 1000
    assert len(found) <= ALLOWED * words / 1000, "\n".join(found)
