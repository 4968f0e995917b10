"""Create a notebook for each problem, and add the address of the students' copy to the front page.

A notebook contains the README, a cell with the stub, and a cell that calls `check()`. If a student
runs the cell with the stub, its content is saved as `problem.py`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grader.course import NOTEBOOK, SUBMISSION_FILE

FRONT_PAGE = "README.md"
"""The name of the file with the front page of the students' copy."""

_PLACEHOLDER = "ADDRESS"
"""The placeholder on the front page for the address of the students' copy."""

_GITHUB = re.compile(
    r"https://github\.com/(?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?/?(?:/tree/(?P<branch>\S+?))?/?"
)
_RULES = re.compile(r"^## Rules", re.M)
"""The heading of the rules in a README. A notebook has its code cells before this heading."""

_RELATIVE_LINK = re.compile(r"(!?)(\[[^\]\n]*\]\()(?!\w+:|#)([^)\s]+)")

_BRANCH = "main"
_COLAB = "https://colab.research.google.com"

# A notebook in a browser is outside of the course's folder, so it fetches and installs the course.
_SETUP = """\
# Run this first. In a browser it fetches the course; PyTorch is already installed.
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
            sys.exit(
                "Open this notebook in a copy of the course. It does not contain the address of "
                "the course."
            )
        subprocess.run(["git", "clone", "--quiet", *COURSE, str(course)], check=True)
if importlib.util.find_spec("grader") is None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--editable", str(course)]
    subprocess.run(install, check=True)
    sys.path.insert(0, str(course))
os.chdir(course)
%load_ext grader
"""

_HOW = """\
Write your code in the next cell and run the cell. This saves the code and \
also defines its functions in this notebook. Then the cell below it runs the tests."""

_CHECK = """\
from grader import check

check({number!r})
"""


def notebooks_of(files: Mapping[str, bytes], url: str = "") -> dict[str, bytes]:
    """Return the notebooks of a students' copy: a dictionary from paths to contents.

    Args:
        files: the files of the copy: a dictionary from paths to contents.
        url: the address of the copy. If it is empty, the notebooks work only inside a copy.
    """
    stubs = [
        path for path in files if re.fullmatch(rf"problems/\d\d-[^/]+/{SUBMISSION_FILE}", path)
    ]
    folders = [path.removesuffix(SUBMISSION_FILE) for path in stubs]
    return {f"{folder}{NOTEBOOK}": _notebook(folder, files, url) for folder in folders}


def with_address(page: str, url: str, *, notebook: str = "") -> str:
    """Return the front page with the address of the copy.

    If the copy is on GitHub, the page also gets links that open the copy in a browser.

    Args:
        page: the content of the front page.
        url: the address of the copy. If it is empty, the page does not change.
        notebook: the path of the notebook that a link opens, or "".
    """
    if not url:
        return page
    page = page.replace(f"git clone {_PLACEHOLDER}", f"git clone {' '.join(_to_clone(url))}")
    github = _GITHUB.fullmatch(url)
    if github is None:  # Colab and Codespaces open only repositories on GitHub
        return page
    badges = [_badge_of_colab(url, notebook)] if notebook else []
    branch = f"/tree/{github['branch']}" if github["branch"] else ""
    badges.append(
        "[![Open in GitHub Codespaces](https://github.com/codespaces/badge.svg)]"
        f"(https://codespaces.new/{github['repository']}{branch})"
    )
    title, rest = page.split("\n", 1)
    return f"{title}\n\n{' '.join(badges)}\n{rest}"


def _to_clone(url: str) -> list[str]:
    """Return the arguments of `git clone` for an address.

    The address may be the web page of a branch on GitHub.
    """
    github = _GITHUB.fullmatch(url)
    if github is None or not github["branch"]:
        return [url]
    return ["--branch", github["branch"], f"https://github.com/{github['repository']}"]


def _badge_of_colab(url: str, notebook: str) -> str:
    github = _GITHUB.fullmatch(url)
    if github is None:
        return ""
    place = f"{github['repository']}/blob/{github['branch'] or _BRANCH}/{notebook}"
    return f"[![Open in Colab]({_COLAB}/assets/colab-badge.svg)]({_COLAB}/github/{place})"


def _notebook(folder: str, files: Mapping[str, bytes], url: str) -> bytes:
    """Return the content of a problem's notebook.

    Args:
        folder: the problem's folder, ending in a slash.
        files: the files of the copy: a dictionary from paths to contents.
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
        cell.id = f"cell-{place}"  # a random id would change with each release
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    text: str = nbformat.writes(new_notebook(cells=cells, metadata=metadata))
    return f"{text}\n".encode()


def _with_absolute_links(readme: str, folder: str, url: str) -> str:
    """Return a README with absolute links, because a notebook may be opened outside of the copy.

    If the copy is not on GitHub, return the README unchanged.
    """
    github = _GITHUB.fullmatch(url)
    if github is None:
        return readme
    branch = github["branch"] or _BRANCH
    raw = f"https://raw.githubusercontent.com/{github['repository']}/{branch}"
    page = f"https://github.com/{github['repository']}/blob/{branch}"

    def absolute(link: re.Match[str]) -> str:
        is_picture, words, target = link.groups()
        base = raw if is_picture else page
        return f"{is_picture}{words}{base}/{posixpath.normpath(folder + target)}"

    return _RELATIVE_LINK.sub(absolute, readme)
