"""Fixtures for all tests of the grader."""

from __future__ import annotations

import functools
import gc
import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.course import Course, own_course
from grader.result import ProblemResult
from grader.sandbox.starting import TemplateProcess
from tests.lent import lent_template
from tests.warm import WarmPython

if TYPE_CHECKING:
    from grader.run.suite import Suite

STUDENTS_PLUGINS = {"attention-course", "pytest-timeout"}
"""The names of the packages whose pytest plugins students install."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark `slow`, and limit torch to one thread.

    Each core runs a test process with small tensors, so more threads would only wait for each
    other. A process that only distributes tests does not load torch. The test processes then start
    seconds earlier.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if not config.getoption("numprocesses", default=None):
        gc.disable()  # before pytest_collection_finish, there is little garbage
        import torch
        from typer import testing

        torch.set_num_threads(1)
        # CliRunner builds all commands at each call. This takes longer than most commands.
        testing._get_command = functools.cache(testing._get_command)
    config.addinivalue_line("markers", "slow: takes seconds, and is run by make test-all")


def pytest_collection_finish() -> None:
    """Exclude all existing objects from garbage collection, and run it less often.

    Otherwise each collection would examine a million objects, which takes a third of a second.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Include all objects in garbage collection again. Otherwise Triton complains at exit."""
    gc.unfreeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the option that repeats the random order of the tests."""
    if config.getoption("random_order_enabled", default=False):
        seed = config.getoption("random_order_seed").removeprefix("default:")
        terminalreporter.write_line(f"The same order again: --random-order-seed={seed}")


MANIFEST = """title = "A small course"

[[parts]]
id = "one"
title = "Doubling"

[[parts]]
id = "two"
title = "more of it"
optional = true

[students]
shared = ["problems/*.py", "problems/shared/*", "problems/shared/oracles/*"]
problem = ["explore.py", "hints.md", "probe.py", "fingerprints.json", "pictures/*.png"]
"""


def entry(id: str, part: str) -> str:
    """Return a problem's entry in the `course.toml` of the small course."""
    return f"""
[[problems]]
id = "{id}"
title = "Doubling"
part = "{part}"
points = 4
difficulty = "easy"
minutes = [5, 5]
forbidden = ["softmax"]
"""


def add_problem(root: Path, id: str, part: str = "one") -> None:
    """Copy the small course's first problem, and give the copy this id."""
    for name in ("problems", "solutions"):
        shutil.copytree(root / name / "01-doubling", root / name / id)
    tests = root / "problems" / id / "test_doubling.py"
    tests.rename(tests.with_name(f"test_{id[3:].replace('-', '_')}.py"))
    with (root / "course.toml").open("a", encoding="utf-8") as manifest:
        manifest.write(entry(id, part))


README = """# 01 · Doubling

Difficulty: easy · Time: 5 minutes · Points: 4

## Rules that the tests enforce

- The number is doubled (`test_doubles`).

## Next step
"""

TESTS = '''
"""Tests of a problem that exists only here."""

import pytest
import torch

from grader.run.checks import check
from shared import oracles

@pytest.mark.points(2)
@pytest.mark.parametrize("size", [1, 2])
def test_doubles(problem, size):
    """double returns twice its argument"""
    check(problem.double(torch.ones(size)), oracles.doubled(torch.ones(size)), "double(x)")


# --- hidden tests ---


@pytest.mark.points(2)
def test_hidden(problem, solution, rng):
    """double is right for other numbers"""
    x = rng.normal(3)
    check(problem.double(x), solution.double(x), "double(x)")
'''

ORACLES = '''
"""Right answers."""

DOUBLED_IN_SECRET = 2


def doubled(x):
    """Twice x."""
    return DOUBLED_IN_SECRET * x
'''

PROBE = '''
"""Distinguish mistakes."""

import torch

from grader.diagnose.probe import Part


def probe(problem):
    """Return a call of double with the number 3."""
    return {"double": Part(main={"three": lambda: problem.double(torch.tensor([3.0]))})}
'''


@pytest.fixture(scope="session")
def origin() -> Iterator[TemplateProcess]:
    """Start the interpreter from which tests fork their sandboxes (see `tests.lent`)."""
    if sys.platform != "linux":
        pytest.skip("the sandbox exists on Linux only")
    with TemplateProcess() as template:
        yield template


@pytest.fixture
def lent(origin: TemplateProcess) -> Iterator[None]:
    """Let grading in the test process fork its sandboxes from `origin`."""
    with lent_template(origin):
        yield


@pytest.fixture(scope="session")
def warm_python(origin: TemplateProcess) -> WarmPython:
    """Return an object that runs Python commands with torch already loaded."""
    return WarmPython(origin)


@pytest.fixture
def course() -> Course:
    """Return this project's course."""
    return own_course()


@pytest.fixture(scope="session")
def course_suite() -> Suite:
    """Collect all tests of this course once, as collecting takes seconds."""
    from grader.run.suite import Suite

    return Suite(own_course().problems(), own_course().root, timeout=120)


@pytest.fixture
def at_home(course_suite: Suite, tmp_path: Path) -> Callable[..., ProblemResult]:
    """Return a function that runs tests on the text of a file, as on a student's computer."""
    from grader.run.local_files import LocalFiles
    from grader.run.session import Session

    def run_text(
        number: str,
        text: str,
        *,
        hidden: bool = True,
        diagnose: bool = False,
        tests: Iterable[str] = (),
        until: Callable[[ProblemResult], bool] = lambda result: False,
    ) -> ProblemResult:
        (problem,) = own_course().select([number])
        path = tmp_path / "problem.py"
        path.write_text(text, encoding="utf-8")
        session = Session(LocalFiles(lambda _: path), hidden=hidden, diagnose=diagnose)

        def enough() -> bool:
            return problem.id in session.results and until(session.results[problem.id])

        course_suite.run(session, [problem], tests, enough=enough)
        return session.results[problem.id]

    return run_text


def write_small_course(root: Path) -> Course:
    """Write a course with one problem, 01-doubling. Its tests run quickly."""
    folder, solutions = root / "problems/01-doubling", root / "solutions/01-doubling"
    oracles = root / "problems/shared/oracles"
    for made in (folder, solutions, oracles):
        made.mkdir(parents=True)
    (oracles.parent / "__init__.py").touch()
    (oracles / "__init__.py").write_text(ORACLES.lstrip(), encoding="utf-8")
    (root / "course.toml").write_text(MANIFEST + entry("01-doubling", "one"), encoding="utf-8")
    (folder / "README.md").write_text(README, encoding="utf-8")
    (folder / "test_doubling.py").write_text(TESTS, encoding="utf-8")
    (folder / "probe.py").write_text(PROBE, encoding="utf-8")
    (folder / "problem.py").write_text("def double(x):\n    raise NotImplementedError\n")
    (solutions / "problem.py").write_text("def double(x):\n    return x + x\n")
    (solutions / "salt.txt").write_text("5a17" * 16 + "\n")
    return Course(root)


@pytest.fixture
def two_parts(tmp_path: Path) -> Course:
    """Write the small course with one problem in part one and two problems in part two."""
    course = write_small_course(tmp_path / "course of two parts")
    for number in ("06", "07"):
        add_problem(course.root, f"{number}-doubling", "two")
        readme = README.replace("01 ·", f"{number} ·").replace(
            "Difficulty", "Part two · Difficulty"
        )
        page = course.root / f"problems/{number}-doubling/README.md"
        page.write_text(readme, encoding="utf-8")
    return course


@pytest.fixture(scope="session")
def new_course() -> Callable[[Path], Course]:
    """Return a function that writes the small course into a folder."""
    return write_small_course


@pytest.fixture
def small_course(tmp_path: Path) -> Course:
    """Write the small course into a temporary folder."""
    return write_small_course(tmp_path / "course")


@pytest.fixture
def run(small_course: Course) -> Callable[..., ProblemResult]:
    """Return a function that runs the small course's tests on the text of a file."""
    from grader.run.local_files import LocalFiles
    from grader.run.session import Session
    from grader.run.suite import Suite

    def run_source(source: str, timeout: float = 10, **options: object) -> ProblemResult:
        path = small_course.root / "handed in/problem.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        files = LocalFiles(lambda _: path, seconds=timeout)
        session = Session(files, **{"hidden": True, **options})
        Suite(small_course.problems(), small_course.root, timeout=timeout).run(session)
        return session.results["01-doubling"]

    return run_source


@dataclass
class StudentRun:
    """The outcome of one pytest run in the problem folder of the small course."""

    status: int
    text: str
    result: ProblemResult

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self.text.splitlines()]

    @property
    def screen(self) -> str:
        """The output below pytest's progress line, without the run's duration."""
        own = re.sub(r"\A.*?\[100%\]\n", "", self.text, flags=re.DOTALL)
        return re.sub(r"=* (.*) in [\d.]+s =*", r"\1", own)


@pytest.fixture(scope="session")
def students_plugins() -> list[Distribution]:
    """Return the packages whose pytest plugins a student has."""
    return [found for found in distributions() if found.name in STUDENTS_PLUGINS]


class _KeptSession:
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        from grader.run.plugin import session_of

        self.session = session_of(session.config)


@pytest.fixture
def student_pytest(
    small_course: Course, monkeypatch: pytest.MonkeyPatch, students_plugins: list[Distribution]
) -> Callable[..., StudentRun]:
    """Return a function that writes a student's file and runs pytest in the test process."""
    from grader.code.course_modules import modules_of_course

    (problem,) = small_course.problems()
    shutil.copy(own_course().root / "pyproject.toml", small_course.root)
    monkeypatch.chdir(problem.folder)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("importlib.metadata.distributions", lambda: students_plugins)

    def run_pytest(source: str, *options: str) -> StudentRun:
        problem.stub.write_text(textwrap.dedent(source), encoding="utf-8")
        kept = _KeptSession()
        with modules_of_course(small_course.root), redirect_stdout(io.StringIO()) as out:
            # pytest's plugin `unraisableexception` collects garbage five times at the end of a run.
            status = pytest.main(["--capture=sys", "-pno:unraisableexception", *options], [kept])
        result = kept.session.results.get(problem.id, ProblemResult(problem.id))
        return StudentRun(status, out.getvalue(), result)

    return run_pytest
