"""Implement `grader compare`: show other correct files, their costs, and questions."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import decode_source
from types import ModuleType

import torch
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from grader.code.cost import Cost, counting
from grader.code.loading import STUDENT_MODULE, named
from grader.code.quiet import quiet
from grader.course import STUB_LINE, Course, Problem
from grader.result import shown
from grader.run.local_files import LocalFiles
from grader.student.report import next_step, whole_points, wrapped
from grader.student.solved.comparison import (
    QuestionAndAnswer,
    RightFile,
    Script,
    comparison_of,
    module_of,
)
from grader.student.testing import run_if_changed
from grader.text import printable

_WIDTH = 80
_YOURS = "yours"
_REFERENCE = "the course's"
_SEED = 8191


def compare(course: Course, problem: Problem, console: Console) -> bool:
    """Show a student's file and other correct files, their costs, and questions.

    If a visible test of the problem does not pass, print only a sentence about this. Return whether
    the files were shown.

    Args:
        course: the student's copy of the course.
        problem: the problem.
        console: the console to print to. A terminal shows one file or question at a time.

    Raises:
        UsageError: the problem has no `compare.py`.
    """
    comparison = comparison_of(course, problem)
    if missing := _why_not_shown(course, problem):
        _Pages(console).text(missing)
        return False
    script = Script.load(comparison.script, course)
    yours = RightFile(_YOURS, decode_source(problem.stub.read_bytes()))
    modules = {_YOURS: LocalFiles()(problem)}
    for number, file in enumerate(comparison.files):
        modules[_title(file)] = module_of(file.source, f"{STUDENT_MODULE}{number}_in_another_style")
    pages = _Pages(console)
    pages.table(cost_table({name: cost_of(m, script) for name, m in modules.items()}))
    pages.text(_about_costs(script))
    stub = problem.original.read_text(encoding="utf-8")
    for file in (yours, *comparison.files):
        pages.wait(f"Enter shows {_title(file)}")
        pages.source(file, stub)
    pages.wait("Enter shows a question")
    _ask(script.questions(modules[_YOURS]), pages)
    return True


def _ask(questions: Sequence[QuestionAndAnswer], pages: _Pages) -> None:
    """Print each question and its answer. In a terminal, wait for Enter before the answer."""
    for number, (question, work_out) in enumerate(questions, 1):
        pages.text(f"\nQuestion {number} of {len(questions)}. {question}")
        pages.wait("Think first. Enter shows what your code says")
        pages.text(f"\n{answer(work_out)}")
        if number < len(questions):
            pages.wait("Enter shows the next question")


def _why_not_shown(course: Course, problem: Problem) -> str:
    """Test a problem. Return a sentence if a visible test does not pass, otherwise ""."""
    session = run_if_changed(course, problem)
    if session is None or (result := session.results[problem.id]).passed:
        return ""
    points = f"{shown(whole_points(result))} of {shown(result.max)}"
    return (
        f"Other correct files are shown once yours passes all visible tests. Problem "
        f"{problem.id[:2]} has {points} points so far. {next_step(result)}"
    )


def _title(file: RightFile) -> str:
    return file.name or _REFERENCE


# Costs


def cost_of(module: ModuleType, script: Script) -> Cost | None:
    """Count the cost of a script's calls to a module. Return None if a call raises an exception."""
    with quiet():
        try:
            torch.default_generator.manual_seed(_SEED)
            call = script.cost(module)
            with counting() as cost:
                call()
        except Exception:  # correct files may fail, because no test makes these calls
            return None
    return cost


def cost_table(costs: dict[str, Cost | None]) -> Table:
    """Return a table with a row of costs for each file."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for heading in ("operations", "entries", "largest tensor"):
        table.add_column(heading, justify="right")
    for name, cost in costs.items():
        numbers = (cost.operations, cost.elements, cost.largest) if cost else ()
        table.add_row(name, *(f"{number:,}" for number in numbers))
    return table


def _about_costs(script: Script) -> str:
    return (
        f"\nCounted for {script.calls}. Only matrix products count as operations, elementwise "
        "products do not. The entries are those of all results. The last column is the number of "
        "entries of the largest tensor.\n\n"
        "The files are shown without docstrings and without the finished parts of the stub.\n"
    )


# Questions


def answer(work_out: Callable[[], str]) -> str:
    """Return the answer to a question, or a sentence if the student's code raises an exception.

    Args:
        work_out: calls the student's code, and returns the answer.
    """
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_SEED)
        try:
            return work_out()
        except Exception as error:  # a correct file may fail, because no test makes this call
            return f"Your code raises an exception in a call that no test makes: {named(error)}"


# Sources


def shown_source(source: str, stub: str) -> str:
    """Return the content of a file without docstrings and without code that the stub provides."""
    finished = {_name(node) for node in ast.parse(stub).body} - _unwritten(stub) - {""}
    tree = ast.parse(source)
    left_out = {n for node in tree.body if _name(node) in finished for n in _lines(node)}
    for node in ast.walk(tree):
        left_out |= set(_docstring_lines(node))
    lines = enumerate(source.split("\n"), 1)
    text = "\n".join(line for number, line in lines if number not in left_out)
    text = re.sub(r"^(class .*:\n)\n+", r"\1", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n\n", text).strip("\n")


def _name(node: ast.AST) -> str:
    is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
    return node.name if is_definition else ""  # type: ignore[attr-defined]


def _unwritten(stub: str) -> set[str]:
    """Return the names of the functions and classes that a stub leaves to the student."""
    return {_name(node) for node in ast.parse(stub).body if STUB_LINE in ast.unparse(node)}


def _lines(node: ast.stmt) -> Iterator[int]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    yield from range(first, (node.end_lineno or first) + 1)


def _docstring_lines(node: ast.AST) -> Iterator[int]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    if isinstance(node, kinds) and ast.get_docstring(node) is not None and len(node.body) > 1:
        first, following = node.body[:2]
        if getattr(node, "lineno", 0) < first.lineno < following.lineno:  # on separate lines
            yield from _lines(first)


def _first_sentences(file: RightFile) -> str:
    """Return the text above a variant: its docstring's first paragraph, and when to choose it."""
    if not file.name or file.name == _YOURS:
        return ""
    written = " ".join((ast.get_docstring(ast.parse(file.source)) or "").split("\n\n")[0].split())
    return f"{written} {file.when}"


class _Pages:
    """Prints pages, and waits for Enter between them if the console is a terminal.

    Args:
        console: the console to print to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._waits = console.is_terminal and sys.stdin.isatty()
        self._width = min(console.width, _WIDTH)

    def table(self, table: Table) -> None:
        """Print a table."""
        self._console.print(table)

    def text(self, text: str) -> None:
        """Print a text with wrapped lines."""
        text = printable(wrapped(text, self._width), self._console.encoding)
        self._console.print(text, markup=False, soft_wrap=True)

    def source(self, file: RightFile, stub: str) -> None:
        """Print a heading and the content of a file, with colours in a terminal."""
        title = f"── {_title(file)} "
        self.text("\n" + title.ljust(self._width, "─"))
        if said := _first_sentences(file):
            self.text(said)
        code = printable(shown_source(file.source, stub), self._console.encoding)
        if not self._console.is_terminal:
            self._console.print(f"\n{code}\n", markup=False, soft_wrap=True)
            return
        theme = {"theme": "ansi_dark", "background_color": "default"}
        self._console.print("", Syntax(code, "python", word_wrap=True, **theme), "")  # type: ignore[arg-type]

    def wait(self, what: str) -> None:
        """In a terminal, print a prompt and wait for Enter."""
        if self._waits:
            self._console.print(f"[dim]{what} ...[/dim]", end="")
            try:
                input()
            except EOFError:
                self._waits = False
