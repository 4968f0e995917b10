"""Every link in the project's pages leads to an existing file and an existing heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course import own_course

ROOT = own_course().root
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "examples/**/*.md", "grader/**/*.md", "problems/*/*.md")
    for path in ROOT.glob(pattern)
)


def text_without(pattern: str, text: str) -> str:
    return re.sub(pattern, "", text, flags=re.DOTALL)


def headings(page: Path) -> set[str]:
    """Return the names that GitHub gives to the headings of a page."""
    text = text_without(r"```.*?```", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in titles}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_existing_files(page: Path) -> None:
    text = text_without(r"```.*?```|`[^`\n]*`", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, heading = link.partition("#")
        if "://" not in link:
            to = page.parent / name if name else page
            assert to.exists(), link
            assert not heading or heading in headings(to), link


def test_headings_have_the_names_that_github_gives() -> None:
    page = ROOT / "docs/weekly.md"
    assert {"who-is-who", "2-keep-your-own-files-in-a-book"} <= headings(page)
