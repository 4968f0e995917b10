"""A notebook contains the files that students receive. It can be run if PyTorch is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from grader.author.notebooks import NOTEBOOK, with_address
from grader.author.release import release
from grader.course import Course, Problem, own_course
from grader.student import notebook
from grader.student.notebook import add_magic, saved
from tests.warm import WarmPython

COURSE = own_course()
IDS = [problem.id for problem in COURSE.problems()]
URL = "https://github.com/some-school/attention"

# Runs the cells of a notebook in order, as IPython does, including their two magic commands.
RUN = """
import json, sys

class Shell:
    user_ns = {"__name__": "__main__"}
    magics = {}
    def register_magic_function(self, function, kind, name):
        self.magics[name] = function

shell = Shell()
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] != "code":
        continue
    source = "".join(cell["source"])
    if source.startswith("%%"):
        line, body = source[2:].split("\\n", 1)
        name, argument = line.split(" ", 1)
        shell.magics[name](argument, body)
        continue
    loads = [line for line in source.splitlines() if line.startswith("%load_ext ")]
    exec("\\n".join(l for l in source.splitlines() if l not in loads), shell.user_ns)
    for line in loads:
        __import__(line.split()[1]).load_ipython_extension(shell)
print("defined:", *sorted(n for n in shell.user_ns if n in sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Release a copy with notebooks."""
    folder = tmp_path_factory.mktemp("for students") / "a course"
    release(COURSE, folder, notebooks=True, url=URL)
    return Course(folder)


def cells(path: Path, kind: str) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == kind]


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_each_problem_has_a_notebook_of_readme_stub_and_check(copy: Course, id: str) -> None:
    (problem,) = copy.select([id])
    path = problem.folder / NOTEBOOK
    setup, stub, check = cells(path, "code")
    assert URL in setup
    assert stub == f"%%problem {id[:2]}\n{problem.stub.read_text(encoding='utf-8').rstrip()}"
    assert f'check("{id[:2]}")' in check.replace("'", '"')
    text = "\n".join(cells(path, "markdown"))
    headings = list(problem.folder.joinpath("README.md").read_text("utf-8").split("\n"))
    for heading in (line for line in headings if line.startswith("#")):
        assert heading in text
    assert "](https://colab.research.google.com/github/some-school/attention/blob/main/" in text
    assert "](pictures/" not in text  # a relative link would not work in Colab
    assert f"]({URL}/blob/main/problems/{id}/hints.md)" in text
    assert f"]({URL.replace('github.com', 'raw.githubusercontent.com')}/main/problems/{id}/" in text


def test_a_notebook_is_valid_and_the_same_in_each_release(copy: Course, tmp_path: Path) -> None:
    again = Course(release(COURSE, tmp_path / "again", notebooks=True, url=URL).folder)
    for path in copy.root.rglob(NOTEBOOK):
        nbformat.validate(nbformat.read(path, as_version=nbformat.NO_CONVERT))
        assert (again.root / path.relative_to(copy.root)).read_bytes() == path.read_bytes()


def run(python: WarmPython, path: Path, copy: Course, *names: str) -> str:
    variables = {"PYTHONPATH": str(copy.root), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["-c", RUN, str(path), *names]
    done = python.run(*words, cwd=path.parent, env=os.environ | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_notebook_runs_with_a_stub_and_with_a_solution(
    copy: Course, warm_python: WarmPython
) -> None:
    (problem,) = copy.select(["01"])
    path = problem.folder / NOTEBOOK
    output = run(warm_python, path, copy)
    assert "0 of 6 points." in output
    (of_course,) = COURSE.select(["01"])
    work = nbformat.read(path, as_version=4)
    (cell,) = (c for c in work.cells if c.source.startswith("%%problem"))
    solution = COURSE.solution(of_course).read_text(encoding="utf-8")
    cell.source = f"%%problem 01\n{solution}"
    mine = problem.folder / "my_notebook.ipynb"
    nbformat.write(work, mine)
    output = run(warm_python, mine, copy, "softmax", "dot_product_similarity")
    assert "6 of 6 points." in output
    assert "defined: dot_product_similarity softmax" in output
    assert problem.stub.read_text(encoding="utf-8") == solution
    problem.stub.write_bytes(problem.original.read_bytes())


# Saving a cell over a file


@pytest.fixture
def small(small_course: Course) -> Problem:
    (problem,) = small_course.problems()
    problem.kept_stub.parent.mkdir(parents=True)
    problem.kept_stub.write_bytes(STUB)
    return problem


STUB = b"def double(x):\n    raise NotImplementedError\n"


def test_a_stub_never_replaces_an_edited_file(
    small: Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    small.stub.write_bytes(b"# work\r\n")
    assert not saved(small, STUB, None)
    assert small.stub.read_bytes() == b"# work\r\n"
    assert "Nothing was saved. To start again: grader reset 01." in capsys.readouterr().out


def test_edits_outside_of_the_notebook_are_kept(small: Problem) -> None:
    assert saved(small, b"# first\n", None)
    assert saved(small, b"# second\n", b"# first\n")
    assert not list(small.folder.glob("*.bak-*"))
    small.stub.write_bytes(b"# in an editor\n")
    assert saved(small, b"# third\n", b"# second\n")
    (kept,) = small.folder.glob("*.bak-*")
    assert kept.read_bytes() == b"# in an editor\n"
    assert small.stub.read_bytes() == b"# third\n"


class Shell:
    """The parts of IPython's shell that the magic command uses."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"x": 3}
        self.magics: dict[str, Callable[[str, str], None]] = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        assert kind == "cell"
        self.magics[name] = function


def test_a_cell_does_not_depend_on_other_cells(
    small: Problem, monkeypatch: pytest.MonkeyPatch, small_course: Course
) -> None:
    monkeypatch.setattr(notebook, "own_course", lambda: small_course)
    shell = Shell()
    add_magic(shell)
    shell.magics["problem"](" 01 ", "def double(y):\n    return y + y")
    assert shell.user_ns["double"](shell.user_ns["x"]) == 6
    assert small.stub.read_bytes() == b"def double(y):\n    return y + y\n"
    with pytest.raises(NameError):
        shell.magics["problem"]("01", "y = x")


# Addresses


PAGE = "# A title\n\nText.\n\ngit clone ADDRESS attention\n"


@pytest.mark.parametrize("url", [URL, f"{URL}.git", f"{URL}/"])
def test_badges_open_the_copy_in_a_browser(url: str) -> None:
    page = with_address(PAGE, url, notebook="problems/01-softmax/notebook.ipynb")
    assert f"git clone {url} attention" in page
    title, _, badges, *_ = page.split("\n")
    assert title == "# A title"
    place = "some-school/attention/blob/main/problems/01-softmax/notebook.ipynb"
    assert f"](https://colab.research.google.com/github/{place})" in badges
    assert "](https://codespaces.new/some-school/attention)" in badges
    branch = with_address(PAGE, f"{URL}/tree/2026", notebook="problems/01-softmax/notebook.ipynb")
    assert f"git clone --branch 2026 {URL} attention" in branch
    assert "some-school/attention/blob/2026/problems" in branch
    assert "](https://codespaces.new/some-school/attention/tree/2026)" in branch


def test_a_badge_needs_a_notebook_and_an_address() -> None:
    assert with_address(PAGE, "", notebook="a.ipynb") == PAGE
    without_notebooks = with_address(PAGE, URL)
    assert "colab" not in without_notebooks
    assert "codespaces" in without_notebooks
    elsewhere = "https://gitlab.com/some-school/attention"
    assert with_address(PAGE, elsewhere, notebook="a.ipynb") == PAGE.replace("ADDRESS", elsewhere)


@pytest.mark.slow
def test_a_copy_of_part_two_opens_its_first_notebook(tmp_path: Path) -> None:
    release(COURSE, tmp_path / "copy", ["two"], notebooks=True, url=URL)
    page = (tmp_path / "copy/README.md").read_text(encoding="utf-8")
    assert f"git clone {URL} attention" in page
    assert "ADDRESS" not in page
    assert "/blob/main/problems/06-transformer-block/notebook.ipynb)" in page
    text = (tmp_path / "copy/problems/06-transformer-block/notebook.ipynb").read_text("utf-8")
    assert "05-multi-head-attention" not in text
