"""What a hostile file of tests can do: nothing but say how its own tests end."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import pytest

from grader.boundary.boundary import Boundary
from grader.boundary.starting import TemplateProcess
from grader.course import own_course
from grader.grade.handed_in_tests import break_submitted
from grader.grade.own_tests_job import JOB
from grader.result import BreakResult
from grader.run.worth_of_tests import Target, targets
from tests.grader.attacks.hostile_tests import FINDS_THE_WORD, HEAD, HOSTILE, SPEAKS
from tests.lent import lent_boundary

COURSE = own_course()
(SOFTMAX,) = COURSE.select(["01"])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox exists on Linux only"),
]


@pytest.fixture(scope="module")
def sandbox(origin: TemplateProcess) -> Iterator[Boundary]:
    with lent_boundary(origin, call_seconds=0.3, jobs=[JOB]) as boundary:
        yield boundary


@pytest.fixture(scope="module")
def several() -> list[Target]:
    """Two right files and six wrong ones of the core."""
    every = targets(COURSE, SOFTMAX)
    right = [target for target in every if target.is_right]
    return [*right[:2], *(target for target in every if target.core)][:8]


@pytest.fixture(scope="module")
def some(several) -> list[Target]:
    """Two right files and two wrong ones."""
    return several[:4]


def broken(text: str, some: list[Target], sandbox: Boundary) -> BreakResult:
    return break_submitted(SOFTMAX, textwrap.dedent(text).encode(), some, sandbox)


HONEST = """
import torch
def test_rows(problem):
    x = torch.randn(3, 4)
    assert torch.allclose(problem.softmax(x), torch.softmax(x, -1), atol=1e-6)
def test_columns(problem):
    x = torch.randn(3, 4)
    assert torch.allclose(problem.softmax(x, 0), torch.softmax(x, 0), atol=1e-6)
"""


def test_honest_tests_earn_something(several, sandbox):
    result = broken(HONEST, several, sandbox)
    assert result.accepts_all
    assert 0 < result.points < 10


ATTACKS = {
    "ends the process": "import os\ndef test_it(problem):\n    os._exit(0)",
    "ends pytest": "import pytest\ndef test_it(problem):\n    pytest.exit('all passed', 0)",
    "skips": "import pytest\ndef test_it(problem):\n    pytest.skip()",
    "expects to fail": (
        "import pytest\n@pytest.mark.xfail\ndef test_it(problem):\n    assert False"
    ),
    "never ends": "def test_it(problem):\n    while True: pass",
    "sleeps": "import time\ndef test_it(problem):\n    time.sleep(1e6)",
    "never ends while it is read": "while True: pass",
    "takes all memory": "def test_it(problem):\n    x = [bytearray(1 << 30) for _ in range(999)]",
    "fails at random": ("import os\ndef test_it(problem):\n    assert os.urandom(1)[0] % 2"),
    "fails on all": "def test_it(problem):\n    assert False",
    "answers for itself": """
        import json, os, struct
        says = {"tests": [["test_it", "failed", 1]], "tensors": []}
        text = json.dumps({"id": 2, "released": [], "says": says}).encode()
        for number in range(3, 20):
            try:
                os.write(number, struct.pack("!II", len(text), 0) + text)
            except OSError:
                pass
        def test_it(problem):
            pass
    """,
    "makes the runner lie": """
        import sys
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_locals.values()):
                if isinstance(value, list):
                    value.append(None)
            frame = frame.f_back
        def test_it(problem):
            frame = sys._getframe()
            while frame:
                found = frame.f_locals.get("found")
                if isinstance(found, list):
                    found.clear()
                frame = frame.f_back
    """,
    "ten thousand tests": (
        "for n in range(10000):\n    exec(f'def test_{n}(problem): assert False')"
    ),
    "a test with a long name": f"def test_{'x' * 5000}(problem):\n    assert False",
    "a test with odd signs": (
        "def f(problem): assert False\nglobals()['test_\\x1b[2J</script>'] = f"
    ),
    "looks at the code": (
        "import inspect\ndef test_it(problem):\n"
        "    assert 'max' in inspect.getsource(problem.softmax)"
    ),
    "fails once something was caught": """
        import sys, torch
        def test_rows(problem):
            x = torch.randn(3, 4)
            assert torch.allclose(problem.softmax(x, 0), torch.softmax(x, 0), atol=1e-6)
        def test_it(problem):
            frame = sys._getframe()
            while frame:
                assert not frame.f_locals.get("first")
                frame = frame.f_back
    """,
    "looks for the file's name": (
        "def test_it(problem):\n    assert 'mistakes' in problem.__file__"
    ),
}


ATTEMPTS = 6
"""What fails by chance may be lucky; what is lucky each time knows something."""


@pytest.mark.parametrize("name", ATTACKS | HOSTILE)
def test_a_trick_earns_nothing(name, some, sandbox):
    text = textwrap.dedent((ATTACKS | HOSTILE)[name])
    text = text if text.startswith(("#", "\ufeff")) else HEAD + text
    for _ in range(ATTEMPTS):
        result = broken(text, some, sandbox)
        if not result.points:
            break
    assert result.points == 0, result.lines()
    assert max(map(len, result.lines())) < 500
    assert all(text.isprintable() for text in result.lines())


@pytest.mark.parametrize("name", SPEAKS)
def test_no_word_of_the_catalogue_reaches_a_student(name, sandbox):
    source = (HEAD + FINDS_THE_WORD + SPEAKS[name]).encode()
    right = b"def softmax(x): return x\n"
    files = [Target(right + b"mathematics = 1\n", None, "one"), Target(right, None, "other")]
    files.append(Target(right + b"n = 1\n", 0, "wrong"))
    told = [break_submitted(SOFTMAX, source, files, sandbox) for _ in range(2)]
    assert not any("mathematics" in line for result in told for line in result.lines())
    assert all("mathematics" not in result.tests for result in told)
    assert not any(result.points for result in told)


def test_nothing_in_the_process_says_in_words_what_is_wrong(some, sandbox):
    """The test fails, also on right files, if it finds a text of the catalogue in memory."""
    words = [target.text for target in targets(COURSE, SOFTMAX) if not target.is_right]
    text = f"""
        import gc, hashlib, sys
        LOOKED_FOR = {[[len(word), hash_of(word)] for word in words]!r}
        def strings():
            for thing in gc.get_objects():
                if isinstance(thing, dict):
                    yield from (value for value in list(thing.values()) if type(value) is str)
                elif isinstance(thing, (list, tuple)):
                    yield from (value for value in list(thing) if type(value) is str)
            for module in list(sys.modules.values()):
                yield str(getattr(module, "__doc__", ""))
        def test_it(problem):
            found = {{(len(s), hashlib.sha256(s.encode(errors="replace")).hexdigest())
                     for s in strings()}}
            assert not any((length, digest) in found for length, digest in LOOKED_FOR)
            assert "grader.run.own_tests" not in sys.modules
            assert (problem.__doc__, problem.softmax.__doc__) == (None, None)
    """
    result = broken(text, some, sandbox)
    assert result.accepts_all, result.refusals
    assert result.caught + result.core_caught == 0


def hash_of(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_one_run_knows_nothing_of_another(some, sandbox):
    result = broken(
        """
        import builtins, os, tempfile
        def test_it(problem):
            assert not hasattr(builtins, "been_here")
            builtins.been_here = True
            for folder in ("/tmp", "/dev/shm", "/var/tmp", "."):
                try:
                    open(folder + "/been_here", "w")
                except OSError:
                    continue
                raise AssertionError
        """,
        some,
        sandbox,
    )
    assert result.accepts_all
    assert result.caught + result.core_caught == 0
