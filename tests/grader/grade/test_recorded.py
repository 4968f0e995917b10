"""Code in a worker can't read expected values, and the messages that it forges are not accepted."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
import torch

from grader.code.quiet import quiet
from grader.course import Course, own_course
from grader.diagnose.answers import answer_of, same
from grader.diagnose.edits import mistakes_of
from grader.diagnose.fingerprints import Fingerprints, KnownMistake, Text
from grader.diagnose.probe import Answers, ask_with_guard
from grader.grade import recorded, replay_run
from grader.grade.recorded import RecordedTests, Recording
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission
from grader.result import ProblemResult, Status
from grader.run.local_files import LocalFiles
from grader.run.orders import files_of_half, known_only
from grader.run.session import Session
from grader.run.suite import Suite
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import TemplateProcess
from tests.lent import lent_prefork_server, lent_sandbox
from tests.source_grader import SourceGrader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

PASSED, FAILED, CRASH, TIMEOUT = Status.PASSED, Status.FAILED, Status.CRASH, Status.TIMEOUT

Grade = Callable[[str], ProblemResult]


@pytest.fixture(scope="module")
def sandbox(origin: TemplateProcess) -> Iterator[Sandbox]:
    with lent_sandbox(origin, call_seconds=0.5, memory_mb=256) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def recorded_course(
    tmp_path_factory: pytest.TempPathFactory, new_course: Callable[[Path], Course]
) -> Course:
    course = new_course(tmp_path_factory.mktemp("recorded") / "course")
    (problem,) = course.problems()
    course.solution(problem).write_text(REFERENCE)
    right, wrong = (Answers({"three": answer_of(torch.tensor([n]))}, {}) for n in (6.0, 9.0))
    tripled = KnownMistake("tripled", {"double": wrong})
    text = Text("it triples", "Count.")
    Fingerprints({"double": right}, (tripled,), {"tripled": text}).save(problem.fingerprints)
    return course


@pytest.fixture(scope="module")
def grade(recorded_course: Course, sandbox: Sandbox) -> Grade:
    """Return a function that grades a file for the small course."""
    return SourceGrader(recorded_course, sandbox)


def statuses(result: ProblemResult) -> list[Status]:
    return [test.status for test in result.tests]


REFERENCE = "def double(x):\n    only_in_the_reference = x + x\n    return only_in_the_reference\n"


def test_an_unloadable_file_is_reported_once(grade: Grade) -> None:
    result = grade("import nothing_of_that_name")
    assert statuses(result) == [Status.ERROR] * 3
    assert len({test.message for test in result.tests}) == 1
    assert "stops while it is being imported" in result.tests[0].message
    endless = grade("while True: pass")
    assert {test.message for test in endless.tests} == {
        "problem.py does not finish while it is being imported."
    }


def test_a_caught_forbidden_call_still_counts(grade: Grade) -> None:
    result = grade("""
        import torch
        def double(x):
            try: torch.softmax(x, -1)
            except Exception: pass
            return x + x
        """)
    assert statuses(result) == [Status.FORBIDDEN] * 3
    assert "softmax" in result.tests[0].message


def source_with_failure(what: str) -> str:
    return f"import os, time\ndef double(x):\n    if len(x) == 2: {what}\n    return x + x\n"


@pytest.mark.parametrize(
    ("what", "status"),
    [("os._exit(0)", CRASH), ("os.abort()", CRASH), ("time.sleep(100)", TIMEOUT)],
)
def test_a_lost_worker_affects_only_its_test(grade: Grade, what: str, status: Status) -> None:
    assert statuses(grade(source_with_failure(what))) == [PASSED, status, PASSED]


def test_after_two_endless_tests_the_others_do_not_run(grade: Grade) -> None:
    result = grade("def double(x):\n    while True: pass")
    assert statuses(result) == [TIMEOUT] * 3
    assert result.tests[2].message.startswith("Not run: two earlier tests")


# Messages that student code writes

FORGER = """
import gc, json, struct
gc.unfreeze()

def namespace(function):
    return next(
        o.__globals__ for o in gc.get_objects()
        if type(o).__name__ == "function" and o.__name__ == function
    )

def double(x): return 3 * x

recording = namespace("send_frame")
main = namespace("load_compiler")["recording"].main.__globals__
send, sent = main["send_frame"], []

def passed(test):
    text = json.dumps([test, [], "passed", ""]).encode()
    return struct.pack("<II", len(text), 0) + text

def forge(channel, message):
    sent.append(message)
    if len(sent) == 1: first(channel, message)
    else: later(channel, message)

def later(channel, message): send(channel, message)
first = send
"""

FORGERIES = {
    "empty records": """
        tests = ["test_doubles[1]", "test_doubles[2]", "test_hidden"]
        def later(channel, message): send(channel, passed(tests[(len(sent) - 2) % 3]))
        """,
    "each message twice": """
        def later(channel, message): send(channel, message), send(channel, message)
        first = later
        """,
    "of another test": """
        def later(channel, message): send(channel, passed("test_other"))
        """,
    "no message at all": """
        def later(channel, message): pass
        """,
    "one that is too long": """
        def later(channel, message): channel.sendall(bytes([255] * 8))
        """,
    "no report of loading": """
        def later(channel, message): send(channel, b'{"status": "passed", "text": 1}')
        first = later
        """,
    "a text without end": """
        text = json.dumps(["test_doubles[1]", [], "error", "x" * 10**7, ["y"] * 10**6]).encode()
        def later(channel, message): send(channel, struct.pack("<II", len(text), 0) + text)
        """,
    "a check that does nothing": """
        namespace("judge_value")["_record"] = lambda *given, **more: None
        """,
    "records in another order": """
        def later(channel, message):
            if len(sent) == 3: send(channel, sent[2]), send(channel, sent[1])
        """,
}


@pytest.mark.slow
@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_message_earns_nothing(grade: Grade, forgery: str) -> None:
    taken = "\nmain['send_frame'] = forge\n"
    result = grade(FORGER + textwrap.dedent(forgery) + taken)
    assert result.points == 0
    assert Status.INTERNAL not in statuses(result)
    assert Status.ERROR not in statuses(result) or "text without" in forgery or "10**7" in forgery
    assert all(0 < len(test.message) < 5000 for test in result.tests)


# Naming mistakes

FORGED_ANSWERS = {
    "no text": "b'{'",
    "another question": """b'{"double": [{"told": "!Error"}, {}]}'""",
    "a sentence": """b'{"double": [{"three": "!you are told"}, {}]}'""",
    "many parts": "json.dumps({str(n): [{}, {}] for n in range(10**5)}).encode()",
    "more than a message may have": "bytes(50 << 20)",
    "an end": "os._exit(0)",
    "a wait": "time.sleep(100)",
}

IN_THE_PROBE = """
import os, time
def later(channel, message): send(channel, FORGED)

def is_of_probe(o):
    return type(o).__name__ == "function" and o.__qualname__ == "load_questions.<locals>.ask"

if any(map(is_of_probe, gc.get_objects())):
    main["send_frame"] = forge
"""


def test_a_mistake_is_named_by_answers_from_a_worker(grade: Grade) -> None:
    result = grade("def double(x): return 3 * x")
    assert result.mistakes == [["tripled"]]
    assert result.diagnoses == ["It looks as if it triples. Count."]
    result = grade("def double(x): return 4 * x")
    assert (result.mistakes, list(result.unknown)) == ([], ["double"])


@pytest.mark.slow
@pytest.mark.parametrize("forged", FORGED_ANSWERS.values(), ids=FORGED_ANSWERS)
def test_forged_answers_name_no_mistake(
    grade: Grade, forged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "PROBE_SECONDS", 0.3)
    result = grade(FORGER + IN_THE_PROBE.replace("FORGED", forged))
    assert statuses(result) == [FAILED] * 3
    assert (result.mistakes, result.diagnoses, result.unknown) == ([], [], {})


def test_a_huge_answer_is_recorded_without_its_content(grade: Grade) -> None:
    result = grade("def double(x): return (3 * x).repeat(10**6) if x.tolist() == [3.0] else 3 * x")
    assert (result.mistakes, result.unknown) == ([], {"double": {"three": "!returned-too-much"}})


def test_data_kept_between_calls_is_reported(grade: Grade) -> None:
    result = grade("""
        calls = []
        def double(x):
            calls.append(x)
            return x + x if len(calls) == 1 else 3 * x
        """)
    assert statuses(result) == [PASSED, FAILED, PASSED]
    assert result.mistakes == [["kept_between_calls"]]


# Contents of a worker

SEARCH = """
import gc, sys, types

def strings(words):
    gc.unfreeze()
    seen, found, waiting = set(), [], [*gc.get_objects(), *sys.modules.values()]
    frame = sys._getframe()
    while frame: waiting.append(frame); frame = frame.f_back
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or thing is words: continue
        seen.add(id(thing))
        if type(thing) in (str, bytes):
            text = thing if type(thing) is str else thing.decode("latin-1")
            found += [word for word in words if word in text]
        elif type(thing) is types.CodeType:
            waiting += [thing.co_consts, thing.co_names, thing.co_varnames, thing.co_name]
        else:
            waiting += gc.get_referents(thing)
    return sorted({*found})

def double(x):
    found = strings([word[::-1] for word in REVERSED])
    if found: raise ValueError(" ".join(found))
    return x + x
"""


def search_for(*words: str) -> str:
    return SEARCH + f"\nREVERSED = {[word[::-1] for word in words]}\n"


SECRET = ("DOUBLED_IN_SECRET", "5a17" * 4, bytes.fromhex("5a17" * 4).decode("latin-1"))
OF_HIDDEN = ("double is right for other numbers", "test_hidden")


@pytest.fixture(scope="module")
def grade_slowly(recorded_course: Course, origin: TemplateProcess) -> Iterator[Grade]:
    """Return a function that grades a file with a longer time limit."""
    with lent_sandbox(origin, call_seconds=60, memory_mb=512) as sandbox:
        yield SourceGrader(recorded_course, sandbox)


@pytest.mark.slow
def test_no_worker_contains_an_oracle_and_no_visible_worker_contains_a_hidden_test(
    grade_slowly: Grade,
) -> None:
    result = grade_slowly(search_for(*SECRET, *OF_HIDDEN, "test_doubles"))
    # The search works, as it finds `test_doubles`, which the worker contains.
    assert statuses(result) == [Status.ERROR] * 3
    assert result.tests[0].message.startswith("ValueError: test_doubles\n")
    assert statuses(grade_slowly(search_for(*SECRET, *OF_HIDDEN)))[:2] == [PASSED] * 2
    assert statuses(grade_slowly(search_for(*SECRET))) == [PASSED] * 3
    assert statuses(grade_slowly(search_for(*OF_HIDDEN))) == [PASSED, PASSED, Status.ERROR]


@pytest.mark.slow
def test_the_worker_of_the_probe_contains_no_test_and_no_reference(
    grade_slowly: Grade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "PROBE_SECONDS", 60.0)
    secret = [*SECRET, *OF_HIDDEN, "test_doubles", "only_in_the_reference"]
    source = search_for(*secret, "Return a call of double")
    # The answer to the probe contains the name of the exception. The probe runs only if tests fail.
    told = "def double(x):\n    if x.tolist() != [3.0]: return 3 * x\n"
    source = source.replace("def double(x):\n", told)
    source = source.replace(
        'raise ValueError(" ".join(found))',
        'raise type("_".join(found).replace(" ", "_"), (Exception,), {})',
    )
    result = grade_slowly(source)
    # The search works, as it finds the texts that the worker contains.
    assert result.unknown == {"double": {"three": "!Return_a_call_of_double"}}


def test_text_of_a_hidden_worker_is_not_shown(grade: Grade) -> None:
    tells = "def double(x):\n    if len(x) < 3: return x + x\n    "
    for what in (
        "raise ValueError(f'told {x}')",
        "return type('told', (), {})()",
        "assert 0, 'told'",
    ):
        result = grade(tells + what)
        assert statuses(result)[:2] == [PASSED] * 2
        assert result.tests[2].status is not PASSED
        assert "told" not in result.tests[2].message
        assert result.tests[2].message


def test_a_replay_shows_what_the_code_printed_and_where_it_ended(
    recorded_course: Course, origin: TemplateProcess
) -> None:
    source = b"print('at first')\ndef double(x):\n    print('told', x)\n    return x.no_such_name\n"
    (problem,) = recorded_course.problems()
    submission = Submission("ada", {problem.id: StudentFile(source)})
    server = lent_prefork_server(origin)
    given = submission, problem, "test_hidden", recorded_course, Settings()
    found = replay_run.run_again(server, *given)
    assert [test.id for test in found.tests] == ["test_hidden"]
    assert "no_such_name" in found.tests[0].message
    assert found.printed.startswith("at first\ntold tensor(")
    lines = found.tracebacks["test_hidden"].splitlines()
    assert lines[0].endswith("in test_hidden")
    assert "test_doubling.py" in lines[0]
    assert lines[1].strip() == 'check(problem.double(x), solution.double(x), "double(x)")'
    assert lines[-1].strip() == "return x.no_such_name"
    assert found.checks["test_hidden"].startswith("double(x): wrong\n  the code:      the test did")


def test_the_visible_half_contains_no_hidden_text(recorded_course: Course) -> None:
    (problem,) = recorded_course.problems()
    folder = "problems/01-doubling"
    names = ["course.toml", f"{folder}/problem.py", f"{folder}/test_doubling.py"]
    for hidden in (False, True):
        files = files_of_half(problem, hidden=hidden)
        assert sorted(files) == [*names, "problems/shared/__init__.py"]
        assert (b"test_hidden" in files[names[-1]]) == hidden


@pytest.mark.slow
@pytest.mark.parametrize("number", [problem.id[:2] for problem in own_course().problems()])
def test_probe_answers_are_the_same_in_workers_and_at_home(
    origin: TemplateProcess, course: Course, course_suite: Suite, number: str, tmp_path: Path
) -> None:
    (problem,) = course.select([number])
    tests = course_suite.tests_of(problem)
    assert tests.probe is not None
    sources = [course.solution(problem).read_bytes()]
    sources += [each.source.encode() for each in mistakes_of(course, problem)[::40]]
    with lent_sandbox(origin, call_seconds=60) as sandbox:
        records = RecordedTests([t for t in course_suite.tests if t.problem == problem], sandbox)
        for number, source in enumerate(sources):
            path = tmp_path / f"problem_{number}.py"
            path.write_bytes(source)
            files = LocalFiles(lambda _, path=path: path)
            found = Recording(records, Session(files), source, sandbox.budget()).ask(tests)
            with quiet():
                right = ask_with_guard(
                    tests.probe, problem.entry, partial(files, problem), watch=True
                )
            assert_same(found, known_only(right, tests.fingerprints.reference))


def assert_same(found: Mapping[str, Answers], right: Mapping[str, Answers]) -> None:
    assert found.keys() == right.keys()
    for part, answers in right.items():
        for asked, expected in (
            (found[part].main, answers.main),
            (found[part].edges, answers.edges),
        ):
            assert asked.keys() == expected.keys(), part
            assert [name for name in asked if not same(asked[name], expected[name])] == [], part
