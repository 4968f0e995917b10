"""Only identical files are reported, never similar ones."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from grader.reports.dashboard import dashboard
from grader.reports.identical import essence, identical_files
from grader.reports.sources import Sources
from grader.reports.student_page import student_pages
from grader.result import ProblemResult, Status
from tests.results import doubles, result_of

SOURCE = b'''"""Softmax."""

import torch


def softmax(x, dim=-1):
    """Weights."""
    e = torch.exp(x - x.max(dim, keepdim=True).values)  # stable
    return e / e.sum(
        dim, keepdim=True)
'''
SAME = [
    SOURCE.replace(b"  # stable", b""),
    SOURCE.replace(b'    """Weights."""\n', b"    # no docstring\n\n"),
    SOURCE.replace(b'"""Softmax."""\n', b"'''Another's.\n\nOf two lines.'''\n"),
    SOURCE.replace(b"\n", b"\r\n"),
    SOURCE.replace(b"    ", b"\t"),
    SOURCE.replace(b"(\n        dim", b"(dim"),
    SOURCE.replace(b"x - x", b"x-x") + b"\n\n# the end",
    b"\xef\xbb\xbf" + SOURCE,
]
OTHERS = [
    SOURCE.replace(b"e /", b"f /"),
    SOURCE.replace(b"keepdim=True)", b"keepdim=False)"),
    SOURCE.replace(b"import torch", b"import torch as t"),
    SOURCE + b"print('a')\n",
    SOURCE.replace(b"    return", b"return"),
]
BROKEN = [b"def f(:\n  x", b"(((", b"\xff", b"  x\n y", b"# coding: rot13", b"x = 'a"]


@pytest.mark.parametrize("other", SAME)
def test_blanks_comments_and_docstrings_make_no_difference(other: bytes) -> None:
    assert other != SOURCE
    assert essence(other) == essence(SOURCE)


@pytest.mark.parametrize("other", OTHERS)
def test_all_other_changes_make_a_difference(other: bytes) -> None:
    assert essence(other) != essence(SOURCE)


def test_strings_other_than_docstrings_make_a_difference() -> None:
    assert essence(b"x = ['a',\n'b'\n]") != essence(b"x = ['a',\n'c'\n]")
    assert essence(b"x = {'a':\n'b'\n}") != essence(b"x = {'a':\n'c'\n}")


@pytest.mark.parametrize("source", BROKEN)
def test_invalid_python_is_compared_too(source: bytes) -> None:
    assert essence(source) == essence(source + b"\n\n# a comment\n")
    assert essence(source) != essence(source + b"\nx = 1\n")


@pytest.mark.parametrize(
    "letters", [b"\0", b"\\'", b"'''", b"(", b"\t\n", b"'\\\n", b"\xff", b"f'{", b"\\\n"]
)
def test_no_file_slows_down_the_comparison(tmp_path: Path, letters: bytes) -> None:
    sources = Sources(tmp_path)
    source = letters * (45_000 // len(letters))
    both = [graded(name, source, sources) for name in ("ada", "bob")]
    assert len(identical_files(both, sources)) == 1


def graded(name: str, source: bytes, sources: Sources, status: Status = Status.PASSED):  # type: ignore[no-untyped-def]
    sources.keep([source])
    problem = ProblemResult("01-softmax", sha256(source).hexdigest(), [doubles(status)])
    return result_of(name, problem, full_name=name.title())


def test_identical_submissions_are_one_line(tmp_path: Path) -> None:
    sources = Sources(tmp_path)
    results = [graded(f"s{n}", source, sources) for n, source in enumerate([SOURCE, *SAME])]
    results += [graded(f"t{n}", source, sources) for n, source in enumerate(OTHERS)]
    (found,) = identical_files(results, sources)
    assert found.problem == "01-softmax"
    assert [person.name for person in found.people] == [f"S{n}" for n in range(1 + len(SAME))]


def test_untouched_stubs_are_not_reported(tmp_path: Path) -> None:
    sources = Sources(tmp_path)
    results = [graded(name, SOURCE, sources, Status.NOT_IMPLEMENTED) for name in ("ada", "bob")]
    assert identical_files(results, sources) == []


def test_the_pages_list_students_without_a_similarity(tmp_path: Path) -> None:
    sources = Sources(tmp_path)
    results = [graded(name, SOURCE, sources) for name in ("ada", "bob")]
    results.append(graded("eve", OTHERS[0], sources))
    identical = identical_files(results, sources)
    index = " ".join(dashboard(results, ["01-softmax"], identical).split())
    assert index.count('<a href="instructor/ada.html#01-softmax"><bdi>Ada</bdi></a>, <a') == 1
    pages = dict(student_pages(results, sources, identical))
    output = "Students with the same file, except for blanks, comments and docstrings:"
    assert output in pages["ada"]
    assert 'href="bob.html#01-softmax"' in pages["ada"].split(output)[1]
    assert output not in pages["eve"]
    assert "Identical files" not in dashboard(results, ["01-softmax"])


def test_a_file_identical_to_one_of_the_course_is_reported(tmp_path: Path) -> None:
    own = {"01-softmax": {"the course's own reference": b"def f():\n    return 1  # so\n"}}
    sources = Sources(tmp_path)
    ada = graded("ada", b'"""Mine."""\ndef f():\n    return 1\n', sources)
    (same,) = identical_files([ada], sources, own)
    assert [person.name for person in same.people] == ["Ada"]
    assert same.course_file == "the course's own reference"
    assert identical_files([ada], sources) == []
    other = {"01-softmax": {"the course's own reference": b"def f():\n    return 2\n"}}
    assert identical_files([ada], sources, other) == []
