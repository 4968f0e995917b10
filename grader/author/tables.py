"""Show the results of an audit as tables.

The tables list the tests that catch each mistake, and the points that each mistake keeps.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from grader.author.audit import Audit
from grader.author.candidates import CandidateKind
from grader.author.running import CandidateOutcome
from grader.author.weights import tests_of
from grader.course import Problem
from grader.files import write_whole


def matrix(audit: Audit, problem: Problem) -> Table:
    """Return a table with a row for each mistake and a column for each test of a problem.

    "●" means that the test caught the mistake, and "·" that it did not. A blank means that the test
    did not run. The columns are numbered as in `legend`.
    """
    tests = test_names(audit, problem)
    table = Table(title=problem.id, title_justify="left", pad_edge=False, box=None)
    table.add_column("mistake", no_wrap=True)
    table.add_column(_column_numbers(len(tests)), no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("weighs", no_wrap=True)
    table.add_column("named", no_wrap=True)
    for outcome in audit.of(CandidateKind.MISTAKE, problem):
        caught = {test.name for test in outcome.caught_by}
        ran = {test.name for test in outcome.result.tests}
        marks = "".join("●" if n in caught else "·" if n in ran else " " for n in tests)
        weight = str(outcome.weight)
        name = escape(outcome.candidate.name)
        table.add_row(name, marks, _points(outcome), weight, _named(outcome))
    return table


def _column_numbers(columns: int) -> str:
    """Return the column numbers from 1 in two lines: tens in the first line, ones in the second."""
    tens = "".join(str(n // 10) if n >= 10 else " " for n in range(1, columns + 1))
    return f"{tens}\n{''.join(str(n % 10) for n in range(1, columns + 1))}"


def legend(audit: Audit, problem: Problem) -> str:
    """Return a text with the column number and name of each test in `matrix`."""
    numbered = enumerate(test_names(audit, problem), 1)
    return "\n".join(f"{number:4} {name}" for number, name in numbered)


def points_kept(audit: Audit, problem: Problem) -> Table:
    """Return a table of the points that each mistake keeps in the tests of each function.

    The points of a function are the points of the tests that use no other function. A mistake that
    misses the idea of a function is shown only for that function. If not all tests were run on a
    mistake, the table shows an upper limit.
    """
    (solution,) = audit.of(CandidateKind.SOLUTION, problem)
    table = Table(title="Points left", title_justify="left", pad_edge=False, box=None)
    for column in ("function", "mistake", "weighs", "points"):
        table.add_column(column, no_wrap=column != "mistake", overflow="fold")
    weighed = [
        mistake for mistake in audit.of(CandidateKind.MISTAKE, problem) if mistake.weight.kind
    ]
    for function in sorted({name for names in solution.uses.values() for name in names}):
        most = sum(test.max for test in tests_of(function, solution.result, solution.uses))
        for mistake in weighed:
            tests = tests_of(function, mistake.result, solution.uses)
            lost = sum(test.max - test.points for test in tests)
            if function == mistake.weight.function or lost and not mistake.weight.function:
                left = f"{'' if mistake.is_whole else '≤ '}{most - lost:.4g}/{most:g}"
                name = escape(mistake.candidate.name)
                table.add_row(function, name, mistake.weight.kind, left)
    return table


def test_names(audit: Audit, problem: Problem) -> list[str]:
    """Return the names of a problem's test functions, in the order of the test file."""
    (solution,) = audit.of(CandidateKind.SOLUTION, problem)
    return list(dict.fromkeys(test.name for test in solution.result.tests))


TABLE = "audit.csv"
"""The file name of the table that `write_table` writes."""


def write_table(audit: Audit, problems: list[Problem], folder: Path) -> None:
    """Write `audit.csv` to `folder`, with a line for each test that was run on each mistake."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["problem", "mistake", "test", "hidden", "status", "named"])
    for problem in problems:
        for outcome in audit.of(CandidateKind.MISTAKE, problem):
            for test in outcome.result.tests:
                row = [problem.id, outcome.candidate.name, test.id, test.hidden, test.status]
                writer.writerow([*row, outcome.named])
    write_whole(folder / TABLE, text.getvalue())


def _points(outcome: CandidateOutcome) -> str:
    if not outcome.is_whole:
        return ""
    return f"{outcome.result.points:.4g}/{outcome.result.max:g}"


def _named(outcome: CandidateOutcome) -> str:
    return "[green]yes[/]" if outcome.named else "[red]no[/]"
