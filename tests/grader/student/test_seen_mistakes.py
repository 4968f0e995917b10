"""At home, a first run shows numbers and a question. A later run names the mistake."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from grader import cli
from grader.code.loading import load_module
from grader.course import Course
from grader.diagnose.fingerprints import Fingerprints, KnownMistake, Text
from grader.diagnose.probe import ask, load_probe
from grader.result import ProblemResult, Status, TestResult
from grader.run.mistakes_made import FITS
from grader.student.report import problem_report
from grader.student.seen import SEEN_FILE, Reading, SeenMistakes, named, reading
from grader.student.watch import Key, Watch
from tests.processes import wait_until

StudentPytest = Callable[..., Any]

TRIPLED = "def double(x):\n    return 3 * x\n"
NAME = "looks as if x is added once too often"
LOOK = "How many times is x in 2x?"
MESSAGE = """double(x)
All rows differ:
  row [0]: got      [3.0000]
           expected [2.0000]
Every entry is 1.5 times what it should be.
Each row should sum to 2."""


@pytest.fixture
def known(small_course: Course) -> Course:
    """Return the small course with one known mistake."""
    (problem,) = small_course.problems()
    probe = load_probe(problem)
    assert probe is not None
    answers = []
    for number, text in enumerate(("def double(x): return x + x", TRIPLED)):
        path = small_course.root / f"source{number}.py"
        path.write_text(text, encoding="utf-8")
        answers.append(ask(probe, load_module(path, f"source{number}")))
        path.unlink()
    right, wrong = answers
    texts = {"tripled": Text("x is added once too often", LOOK)}
    Fingerprints(right, (KnownMistake("tripled", wrong),), texts).save(problem.fingerprints)
    return small_course


# Reading a result


def result_of(*mistakes: tuple[str, str, str]) -> ProblemResult:
    names = tuple(name for name, *_ in mistakes)
    test = TestResult("test_one", "It doubles", False, 2, Status.FAILED, MESSAGE, names)
    message_text = [f"It looks as if {when}. {look}".strip() for _, when, look in mistakes]
    return ProblemResult(
        "01-doubling",
        "",
        [test],
        diagnoses=message_text,
        mistakes=[[name] for name, *_ in mistakes],
    )


A = ("a", "f adds", "What does f add?")
B = ("b", "g adds", "What does g add?")


def test_of_two_mistakes_one_is_shown_until_it_is_fixed() -> None:
    first = reading(result_of(A, B), [])
    assert (first.sentences, first.nudge, first.seen) == ((), "What does f add?", (("a",),))
    second = reading(result_of(A, B), first.seen)
    assert second.sentences == ("It looks as if f adds. What does f add?",)
    assert (second.nudge, second.withheld, second.seen) == ("", False, (("a",),))
    assert reading(result_of(B), second.seen).nudge == "What does g add?"


def test_a_question_is_asked_only_about_the_shown_failure() -> None:
    result = result_of(A, B)
    result.tests[0] = replace(result.tests[0], diagnosis=("b",))
    assert reading(result, []).nudge == "What does g add?"
    assert named(result).sentences == ("It looks as if g adds. What does g add?",)
    result.tests[0] = replace(result.tests[0], diagnosis=())
    assert (reading(result, []), named(result)) == (Reading(), Reading())


def test_mistakes_with_equal_answers_have_questions_but_no_name() -> None:
    result = result_of(("a", "f adds. Look\nOr as if g adds", "Look"))
    assert reading(result, []).nudge == "Look"


def test_a_mistake_that_was_seen_in_a_group_counts_as_seen() -> None:
    assert reading(result_of(A), [("a", "of_a_module")]).sentences
    assert not reading(result_of(A), [("b",)]).sentences


def test_a_mistake_without_a_question_shows_its_numbers() -> None:
    first = reading(result_of(("a", "f adds", "")), [])
    assert (first.nudge, first.withheld) == ("", True)


def test_a_sentence_that_names_no_mistake_is_always_shown() -> None:
    seen = ProblemResult("01-doubling", diagnoses=["`a` is a Parameter."], mistakes=[[]])
    assert reading(seen, []).sentences == ("`a` is a Parameter.",)


def test_the_first_run_shows_an_observation_and_a_question() -> None:
    result = result_of(A)
    other = TestResult("test_two", "It fits", False, 2, Status.FAILED, f"double(y): wrong. {FITS}")
    result.tests.append(other)
    text = problem_report(result, 0, in_full=True, reading=reading(result, []))
    assert "f adds" not in text
    assert "named" not in text
    assert "sum to 2" not in text
    places = [text.index(words) for words in ("double(x)", "got", "1.5 times", "What does f add?")]
    assert places == sorted(places)
    again = problem_report(result, 0, reading=named(result))
    assert again.index("f adds") < again.index("got")
    assert "sum to 2" in again


# pytest


def test_pytest_names_a_mistake_in_a_later_run(
    known: Course, student_pytest: StudentPytest
) -> None:
    first = student_pytest(TRIPLED, "-k", "1").text  # a run of selected tests counts, too
    assert NAME not in first
    assert LOOK in first
    assert "To see the mistake's name: uv run grader hint 01 --name" in first
    second = student_pytest(TRIPLED).text
    assert NAME in second
    assert "--name" not in second


def test_a_course_can_name_mistakes_at_once(known: Course, student_pytest: StudentPytest) -> None:
    manifest = known.root / "course.toml"
    manifest.write_text(f'name = "at once"\n{manifest.read_text("utf-8")}', encoding="utf-8")
    assert NAME in student_pytest(TRIPLED).text


# hint and check


@pytest.fixture
def grader(known: Course, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that runs a command on the `known` course and returns the output."""
    monkeypatch.setattr(cli, "own_course", lambda: known)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli.app, arguments)
        assert done.exit_code in (0, 1), done.output
        return " ".join(done.output.split())

    return run


@pytest.mark.slow
def test_hint_with_name_names_the_mistake_at_once(
    known: Course, grader: Callable[..., str], student_pytest: StudentPytest
) -> None:
    (problem,) = known.problems()
    assert "There is no wrong answer here. 01-doubling: Next: double" in grader("hint", "--name")
    problem.stub.write_text(TRIPLED, encoding="utf-8")
    assert NAME in grader("hint", "--name")
    assert NAME in grader("hint", "01", "--name")
    assert NAME in student_pytest(TRIPLED).text  # as `hint` has named the mistake
    problem.stub.write_text("def double(x): return 5 * x - 7", encoding="utf-8")
    assert "The wrong answers match no known mistake." in grader("hint", "--name")


def test_check_names_no_mistake(known: Course, grader: Callable[..., str]) -> None:
    known.problems()[0].stub.write_text(TRIPLED, encoding="utf-8")
    for _ in range(2):
        assert "looks as if" not in grader("check")


def test_hint_reports_that_all_is_solved_without_running_tests(
    known: Course, grader: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (problem,) = known.problems()
    problem.stub.write_text("def double(x): return x + x", encoding="utf-8")
    assert "Well done" in grader("check")
    with monkeypatch.context() as patch:
        patch.setattr("grader.run.suite.Suite", None)
        assert "All tests here pass" in grader("hint")
    problem.stub.write_text("def double(x): return 2 * x", encoding="utf-8")
    assert not SeenMistakes(known.root).passes(problem)
    assert "All tests here pass" in grader("hint")


# The file of seen mistakes


DAMAGED = [
    "",
    "{",
    "[]",
    '{"seen": {"01-doubling": [[3]]}}',
    '{"passed": {"01-doubling": {}}}',
]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_with_a_damaged_file_nothing_counts_as_seen(known: Course, text: str) -> None:
    (known.root / SEEN_FILE).write_text(text, encoding="utf-8")
    memory, result = SeenMistakes(known.root), result_of(A)
    assert memory.reading(result).withheld
    assert not memory.passes(known.problems()[0])
    memory.save_passed(known.problems()[0], result)
    memory.mark_seen(result.id, [("a",)])
    assert not memory.reading(result).withheld
    assert json.loads((known.root / SEEN_FILE).read_text("utf-8"))["seen"][result.id] == [["a"]]


def test_an_unwritable_file_is_ignored(known: Course) -> None:
    (known.root / SEEN_FILE).mkdir()
    memory = SeenMistakes(known.root)
    memory.mark_seen("01-doubling", [("a",)])
    assert memory.reading(result_of(A)).withheld


def test_git_ignores_the_file_of_seen_mistakes(course: Course) -> None:
    for path in (Path(".gitignore"), Path("students/.gitignore")):
        assert f"/{SEEN_FILE}" in (course.root / path).read_text("utf-8").splitlines()


# watch


@pytest.mark.slow
def test_watch_names_a_mistake_after_a_key_or_in_a_later_run(known: Course) -> None:
    screen, source = io.StringIO(), known.problems()[0].stub
    source.write_text(TRIPLED, encoding="utf-8")
    watch = Watch(known, Console(file=screen, width=100))
    thread = Thread(target=watch.run)
    thread.start()

    def shown_after(act: Callable[[], object], words: str) -> str:
        before = len(screen.getvalue())
        act()
        wait_until(lambda: words in screen.getvalue()[before:])
        return screen.getvalue()[before:]

    def save() -> None:
        source.write_text(f"{source.read_text('utf-8')}\n# saved\n", encoding="utf-8")

    try:
        assert NAME not in shown_after(lambda: None, LOOK)
        assert NAME in shown_after(lambda: watch.events.put(Key("w")), NAME)
        assert NAME in shown_after(save, LOOK)
    finally:
        watch.events.put(Key("q"))
        thread.join(60)
    assert not thread.is_alive()
