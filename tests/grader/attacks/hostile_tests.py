"""Files of tests that try to earn something without testing anything, each by another trick."""

from __future__ import annotations

HEAD = "import os, sys, gc, threading, time, atexit, builtins, random, inspect, traceback, torch\n"

FAIL = "def test_it(problem):\n    assert False\n"
PASS = "def test_it(problem):\n    pass\n"

WALK = """
def frames():
    frame = sys._getframe()
    while frame:
        yield frame
        frame = frame.f_back
"""

HOSTILE = {
    # Forging answers
    "writes an answer from __del__": """
class Last:
    def __del__(self):
        os.write(3, b'x' * 100)
keep = Last()
def test_it(problem):
    os.write(3, b'y' * 100)
""",
    "writes an answer at exit": (
        "atexit.register(lambda: os.write(3, b'{}'))\ndef test_it(problem):\n    raise SystemExit"
    ),
    "writes an answer from a thread": """
def talk():
    while True:
        os.write(3, b'\\0' * 64)
try:
    threading.Thread(target=talk, daemon=True).start()
except RuntimeError:
    pass
def test_it(problem):
    time.sleep(0.02)
    assert False
""",
    "closes the channel": "os.close(3)\n" + PASS,
    "puts something else in the channel's place": "os.dup2(0, 3)\n" + PASS,
    "shuts the channel down from the inside": """
import socket
for thing in gc.get_objects():
    if isinstance(thing, socket.socket):
        thing.close()
"""
    + PASS,
    "patches how things are sent": WALK
    + """
for frame in frames():
    if 'send' in frame.f_globals and 'Worker' in frame.f_globals:
        frame.f_globals['send'] = lambda *a, **k: None
"""
    + PASS,
    # The runner
    "patches the runner's functions": WALK
    + """
for frame in frames():
    for name in ('_run', '_line', '_all_cases'):
        if name in frame.f_globals:
            frame.f_globals[name] = lambda *a, **k: []
"""
    + FAIL,
    "patches the runner's code": WALK
    + """
for frame in frames():
    if frame.f_code.co_name == 'run_own_tests':
        frame.f_globals['_run'].__code__ = (lambda *a: None).__code__
"""
    + FAIL,
    "patches inspect": "inspect.signature = None\n" + FAIL,
    "patches traceback": "traceback.walk_tb = None\n" + FAIL,
    "patches random": "random.seed = None\n" + FAIL,
    "patches torch's generator": "torch.default_generator = None\n" + FAIL,
    "patches isinstance": "builtins.isinstance = lambda *a: True\n" + FAIL,
    "patches getattr": "builtins.getattr = lambda *a: None\n" + FAIL,
    "patches pytest": "import pytest\npytest.mark = None\n" + FAIL,
    "an exception that lies": """
class Skipped(Exception):
    @property
    def __traceback__(self):
        raise SystemExit
def test_it(problem):
    raise Skipped
""",
    "an exception whose class lies": """
class Meta(type):
    @property
    def __name__(cls):
        raise KeyboardInterrupt
class Odd(BaseException, metaclass=Meta):
    pass
def test_it(problem):
    raise Odd
""",
    "a mark that lies": """
class Mark:
    name = 'parametrize'
    @property
    def args(self):
        os._exit(0)
test = lambda problem: None
test.pytestmark = [Mark()]
""",
    "a signature that lies": "def test_it(problem):\n    pass\ntest_it.__signature__ = 7\n",
    "a name that is not text": "globals()[7] = 7\n" + FAIL,
    "a module that is not": "sys.modules['torch'] = None\n" + FAIL,
    "a recursion without end": "def test_it(problem):\n    test_it(problem)\n",
    "a fixture that asks for itself": """
import pytest
@pytest.fixture
def one(two): pass
@pytest.fixture
def two(one): pass
def test_it(problem, one): pass
""",
    "a fixture without end": """
import pytest
@pytest.fixture
def one():
    yield 1
    while True: pass
def test_it(problem, one): pass
""",
    "a skip that changes its mind": """
import pytest
@pytest.mark.skipif("os.urandom(1)[0] % 8 == 0")
def test_it(problem):
    assert False
""",
    "xfail when it fits": """
import pytest
@pytest.mark.xfail(strict=True)
def test_it(problem):
    assert os.urandom(1)[0] % 8 == 0
""",
    # By chance, time, and what it can see
    "fails by time": "def test_it(problem):\n    assert time.perf_counter_ns() // 1000 % 8 == 0\n",
    "fails by its process": "def test_it(problem):\n    assert os.getpid() % 8 == 0\n",
    "fails by its address": "def test_it(problem):\n    assert id(object()) // 16 % 8 == 0\n",
    "counts the workers before it": WALK
    + """
def test_it(problem):
    for frame in frames():
        request = frame.f_locals.get('request')
        if isinstance(request, dict) and 'id' in request:
            assert request['id'] // 2 % 3 == 0
""",
    "knows the order from its own bytes": WALK
    + """
def test_it(problem):
    source = next(f.f_locals['source'] for f in frames() if 'source' in f.f_locals)
    order = [i < 4 for i in range(6)]
    random.Random(bytes(source)[:-1]).shuffle(order)
    number = [f.f_locals['request']['id'] for f in frames()
              if isinstance(f.f_locals.get('request'), dict) and 'id' in f.f_locals['request']]
    assert order[number[0] // 2 % 6]
""",
    "hashes the code": (
        "def test_it(problem):\n    assert hash(problem.softmax.__code__.co_code) // 8 % 8 == 0\n"
    ),
    "counts what is in the file": "def test_it(problem):\n    assert len(vars(problem)) % 8 == 0\n",
    "counts objects": "def test_it(problem):\n    assert sys.getallocatedblocks() % 8 == 0\n",
    "looks at a line's number": (
        "def test_it(problem):\n    assert problem.softmax.__code__.co_firstlineno % 8 == 0\n"
    ),
    "has an own solution": """
def test_it(problem):
    problem.softmax = torch.softmax
    assert os.urandom(1)[0] % 8 == 0
""",
    "behaves otherwise the second time": """
try:
    open('/dev/shm/second', 'x')
except FileExistsError:
    second = True
except OSError:
    second = False
def test_it(problem):
    assert second
""",
    # Resources
    "forks": "def test_it(problem):\n    while True: os.fork()\n",
    "starts a program": "def test_it(problem):\n    assert os.system('true')\n",
    "a large shape": "def test_it(problem):\n    torch.ones(1 << 40)\n",
    "a crash": "import ctypes\ndef test_it(problem):\n    ctypes.string_at(0)\n",
    "signals itself": "def test_it(problem):\n    os.kill(os.getpid(), 9)\n",
    "hides from the alarm": """
def test_it(problem):
    while True:
        try:
            while True: pass
        except BaseException:
            pass
""",
    "too deep for Python": "x = " + "(" * 5000 + ")" * 5000 + "\n" + FAIL,
    "too long a number": "x = " + "9" * 100_000 + "\n" + FAIL,
    "five hundred tests, all wrong": "\n".join(f"def test_{n}(p=0): assert 0" for n in range(500)),
    # Bytes
    "a byte 0": "x = '\0'\n" + FAIL,
    "a form feed and other line ends": "x = 1\x0c\n\u2028\n" + FAIL,
    "a coding that is not": "# -*- coding: nonsense -*-\n" + FAIL,
    "a coding that hides": "# -*- coding: utf-7 -*-\n" + FAIL,
    "a byte order mark": "\ufeff" + FAIL,
    "an empty file": "",
    # The file of somebody else
    "a conftest": """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call): return None
pytest_plugins = ['pytester']
@pytest.fixture(autouse=True)
def problem(): return torch
"""
    + FAIL,
    "unittest": (
        "import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self): assert False\n"
    ),
    "imports what it is to test": "from problem import softmax\ndef test_it(problem): assert 0\n",
    "imports the grader": "import grader.result\n" + FAIL,
    "imports the worker's own": "import grader.run.own_tests\n" + FAIL,
}

SPEAKS = {
    # Ways to carry the word 'mathematics', which stands in a file, to where a student reads it
    "by a test's name": """
exec(f"def test_{WORD}(problem): assert False")
""",
    "by names that it has": """
def test_mathematics(problem): assert False
def test_it(problem): pass
if WORD != 'mathematics': del test_mathematics
""",
    "by an exception's name while it is read": "raise type(WORD, (Exception,), {})",
    "by an import": "exec(f'import {WORD}')",
    "by what a test asks for": "exec(f'def test_it(problem, {WORD}): pass')",
    "by a fixture": """
import pytest
exec(f"@pytest.fixture(params=[1])\\ndef {WORD}(): pass")
def test_it(problem): pass
""",
    "by a class": """
exec(f"class Test{WORD}:\\n    def __init__(self): pass")
""",
    "by a message": "def test_it(problem): assert False, WORD",
    "by a line": "exec(compile('\\n' * 500 + 'def test_it(problem): assert False', "
    "'tests of your own', 'exec'))",
    "by printing": "def test_it(problem):\n    print(WORD)\n    assert False",
    "by a warning": "import warnings\ndef test_it(problem):\n    warnings.warn(WORD)\n    assert 0",
}

FINDS_THE_WORD = """
def found():
    module = sys.modules.get('problem') or next(
        t for t in gc.get_objects() if hasattr(t, 'softmax') and type(t) is type(sys)
        and not t.__name__.startswith('torch'))
    return 'mathe' 'matics' if hasattr(module, 'mathe' 'matics') else 'other'
WORD = found()
"""
