"""Make a notebook for each problem, and put the copy's address on its front page.

A notebook contains the README, the stub as a cell that is saved to `problem.py`, and `check()`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grader.course import NOTEBOOK, SUBMISSION_FILE

FRONT_PAGE = "README.md"
"""The front page of the students' copy."""

_PLACEHOLDER = "ADDRESS"
"""Stands on the front page where the address comes."""

_GITHUB = re.compile(
    r"https://github\.com/(?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?/?(?:/tree/(?P<branch>\S+?))?/?"
)
_RULES = re.compile(r"^## Rules", re.M)
"""The heading before which the stub is inserted."""

_RELATIVE_LINK = re.compile(r"(!?)(\[[^\]\n]*\]\()(?!\w+:|#)([^)\s]+)")

_BRANCH = "main"
_COLAB = "https://colab.research.google.com"

# In a browser there is only the notebook, so fetch the course and its requirements except PyTorch.
_SETUP = """\
# Run this first. In the browser it fetches the course; PyTorch is there already.
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

COURSE = {address!r}

here = Path.cwd()
course = next((p for p in (here, *here.parents) if (p / "course.toml").is_file()), None)
if course is None:
    course = here / "course"
    if not course.is_dir():
        if not COURSE:
            sys.exit("Open this notebook in a copy of the course; its address is not known here.")
        subprocess.run(["git", "clone", "--quiet", *COURSE, str(course)], check=True)
if importlib.util.find_spec("grader") is None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--editable", str(course)]
    subprocess.run(install, check=True)
    sys.path.insert(0, str(course))
os.chdir(course)
%load_ext grader
"""

_HOW = """\
The next cell is your `problem.py`: write into it and run it. That saves the file and defines what \
is in it here, too. Then the cell below it runs the tests."""

_CHECK = """\
from grader import check

check({number!r})
"""


def notebooks_of(files: Mapping[str, bytes], url: str = "") -> dict[str, bytes]:
    """Return a notebook for each problem of a students' copy: path -> content.

    Args:
        files: the files of the copy, by their paths.
        url: the copy's address; without it, notebooks work in a copy only.
    """
    stubs = [
        path for path in files if re.fullmatch(rf"problems/\d\d-[^/]+/{SUBMISSION_FILE}", path)
    ]
    folders = [path.removesuffix(SUBMISSION_FILE) for path in stubs]
    return {f"{folder}{NOTEBOOK}": _notebook(folder, files, url) for folder in folders}


def with_address(page: str, url: str, *, notebook: str = "") -> str:
    """Return the front page with the address of the copy, and badges that open it in a browser.

    Args:
        page: the front page.
        url: the address; if it is empty, the page does not change.
        notebook: the path of the notebook to open first, if there is one.
    """
    if not url:
        return page
    page = page.replace(f"git clone {_PLACEHOLDER}", f"git clone {' '.join(_to_clone(url))}")
    found = _GITHUB.fullmatch(url)
    if found is None:  # others open neither in Colab nor in Codespaces
        return page
    badges = [_badge_of_colab(url, notebook)] if notebook else []
    branch = f"/tree/{found['branch']}" if found["branch"] else ""
    badges.append(
        "[![Open in GitHub Codespaces](https://github.com/codespaces/badge.svg)]"
        f"(https://codespaces.new/{found['repository']}{branch})"
    )
    title, rest = page.split("\n", 1)
    return f"{title}\n\n{' '.join(badges)}\n{rest}"


def _to_clone(url: str) -> list[str]:
    """Return the address to clone; the address of a branch works in browsers only."""
    found = _GITHUB.fullmatch(url)
    if found is None or not found["branch"]:
        return [url]
    return ["--branch", found["branch"], f"https://github.com/{found['repository']}"]


def _badge_of_colab(url: str, notebook: str) -> str:
    found = _GITHUB.fullmatch(url)
    if found is None:
        return ""
    place = f"{found['repository']}/blob/{found['branch'] or _BRANCH}/{notebook}"
    return f"[![Open in Colab]({_COLAB}/assets/colab-badge.svg)]({_COLAB}/github/{place})"


def _notebook(folder: str, files: Mapping[str, bytes], url: str) -> bytes:
    """Return a problem's notebook.

    Args:
        folder: the problem's folder, ending in a slash.
        files: the files of the copy.
        url: the address of the copy.
    """
    number = folder.removeprefix("problems/")[:2]
    readme = _with_absolute_links(files[f"{folder}README.md"].decode(), folder, url)
    rules = _RULES.search(readme)
    cut = rules.start() if rules else len(readme)
    stub = files[f"{folder}{SUBMISSION_FILE}"].decode()
    badge = _badge_of_colab(url, f"{folder}{NOTEBOOK}")
    cells = [
        *([new_markdown_cell(badge)] if badge else []),
        new_code_cell(_SETUP.format(address=_to_clone(url) if url else []).strip()),
        new_markdown_cell(readme[:cut].strip()),
        new_markdown_cell(_HOW),
        new_code_cell(f"%%problem {number}\n{stub}".strip()),
        new_code_cell(_CHECK.format(number=number).strip()),
        new_markdown_cell(readme[cut:].strip()),
    ]
    for place, cell in enumerate(cells):
        cell.id = f"cell-{place}"  # by default it is random, and each release would change it
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    text: str = nbformat.writes(new_notebook(cells=cells, metadata=metadata))
    return f"{text}\n".encode()


def _with_absolute_links(readme: str, folder: str, url: str) -> str:
    """Return a README with links that work in a browser, which has only the notebook."""
    found = _GITHUB.fullmatch(url)
    if found is None:
        return readme
    branch = found["branch"] or _BRANCH
    raw = f"https://raw.githubusercontent.com/{found['repository']}/{branch}"
    page = f"https://github.com/{found['repository']}/blob/{branch}"

    def absolute(link: re.Match[str]) -> str:
        is_picture, words, target = link.groups()
        base = raw if is_picture else page
        return f"{is_picture}{words}{base}/{posixpath.normpath(folder + target)}"

    return _RELATIVE_LINK.sub(absolute, readme)
