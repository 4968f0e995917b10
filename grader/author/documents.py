"""Adapt documents to a students' copy that contains only some parts of the course."""

from __future__ import annotations

import re
from collections.abc import Sequence


def without_part(text: str, left_out: Sequence[str], parts: Sequence[str]) -> str:
    """Return a document without the sections and list items about omitted parts of the course.

    Links to omitted problems become plain text.

    Args:
        text: the document in Markdown.
        left_out: the ids of the problems that the copy does not contain.
        parts: the ids of the parts that the copy does not contain.
    """
    for part in parts:
        text = re.sub(rf"^## Part {part}\n.*?(?=^## |\Z)", "", text, flags=re.M | re.S)
        text = re.sub(rf"^- Part {part}\b.*\n", "", text, flags=re.M)
    text = re.sub(r"^## .*\n+(?=## )", "", text, flags=re.M)  # headings of empty sections
    ids = "|".join(map(re.escape, left_out))
    return re.sub(rf"\[([^\]\n]+)\]\([^)\n]*\b(?:{ids})/[^)\n]*\)", r"\1", text)


def without_tables(manifest: str, ids: Sequence[str]) -> str:
    """Return the content of a `course.toml` without the parts and problems with these ids."""
    tables = re.split(r"^(?=\[)", manifest, flags=re.M)
    named = [re.search(r'^id = "(.*)"$', table, re.M) for table in tables]
    pairs = zip(tables, named, strict=True)
    return "".join(table for table, name in pairs if name is None or name[1] not in ids)


def beginning_with(text: str, left_out: str, first: str) -> str:
    """Return a document in which the example commands use the first problem of the copy.

    The document changes only if the copy does not contain the first problem of the course.

    Args:
        text: the document in Markdown.
        left_out: the id of the first problem that the copy does not contain.
        first: the id of the first problem that the copy contains.
    """
    if left_out > first:
        return text
    text = text.replace(left_out, first)
    return re.sub(r"((?:uv run grader \w+|ARGS=|check\(\") ?)\d\d\b", rf"\g<1>{first[:2]}", text)
