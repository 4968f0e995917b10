"""Grading and a run at home report unusable files and exceptions in the same way."""

import re

import pytest

from grader.result import Status

ERROR, MEMORY, NOT_IMPLEMENTED = Status.ERROR, Status.MEMORY, Status.NOT_IMPLEMENTED

HOSTILE = """class Hostile(Exception):
    def __str__(self):
        raise SystemExit
"""

FILES = {
    "no Python": ("def f(:\n  pass", ERROR, r"can't be read as Python: .*\n  line 1: def"),
    "an error": ("x = 1\nraise ValueError('no')", ERROR, r"ValueError: no\n  problem.py:2: "),
    "not written": ("raise NotImplementedError", NOT_IMPLEMENTED, "raises NotImplementedError"),
    "an import": ("import nowhere_at_all", ERROR, "Error: problem.py can't import nowhere"),
    "an exit": ("raise SystemExit", ERROR, "SystemExit"),
    "an exit as its text": (HOSTILE + "raise Hostile", ERROR, "imported.\nHostile\n"),
    "memory": ("x = bytearray(10 ** 13)", MEMORY, "out of memory.*\n  problem.py:1: x"),
    "a text": ("import json\nexec('x =')", ERROR, "stops while it is being imported"),
    "signs": ("x = " + "-" * 10**5 + "1", ERROR, "it is nested too deeply"),
    "attributes": ("x = a" + ".a" * 10**5, ERROR, "it is nested too deeply"),
    "branches": ("if 0: 0\n" + "elif 0: 0\n" * 10**4, ERROR, "it is nested too deeply"),
    "a backslash": (
        'import os\nplace = "C:\\Users\\me"', ERROR, r"line 2: .*\nIn quotes, a backslash"
    ),
}  # fmt: skip

CALLS = {
    "an error": ("raise ValueError('too bad')", ERROR, "^ValueError: too bad\n  problem.py:9"),
    "a custom class": ("raise Mine('x' * 10000)", ERROR, r"^Mine: x{1000}"),
    "an exit": ("raise SystemExit(0)", ERROR, "SystemExit"),
    "an exit as its text": ("raise Hostile", ERROR, "^Hostile\n  problem.py:"),
    "a group that ends": ("raise BaseExceptionGroup('several', [SystemExit(0)])", ERROR, "several"),
    "no name": ("raise type('', (ValueError,), {})('several')", ERROR, "several"),
    "markup": ("raise type('not a <b>', (ValueError,), {})('several')", ERROR, "several"),
    "control characters": ("raise ValueError(chr(27) + '[2J')", ERROR, "\N{REPLACEMENT CHARACTER}"),
    "a mapping": ("mmap.mmap(-1, 1 << 50)", MEMORY, "memory"),
    "what the system says": ("raise OSError(12, 'no')", MEMORY, "memory"),
    "what torch says": (
        "raise RuntimeError('DefaultCPUAllocator: not enough memory')", MEMORY, "memory"
    ),
    "not written": ("raise NotImplementedError", NOT_IMPLEMENTED, ""),
    "no forward": ("return nn.Module()(x)", ERROR, "NotImplementedError"),
    "a statement of torch's": ("return Function.apply(x)", ERROR, "NotImplementedError"),
    "torch's own": ("return torch.ones(2).to('lazy')", ERROR, "NotImplementedError"),
    "the forms of operands": (
        "q = torch.ones(2, 3); return q @ q", ERROR, r"q is \(2, 3\) float32"
    ),
}  # fmt: skip
SOURCE = f"""{HOSTILE}
import mmap, torch
from torch import nn
class Function(torch.autograd.Function): pass
class Mine(ValueError): pass
def f(x): {{}}
def double(x): return f(x)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_loaded(graded, run, name):
    source, status, message = FILES[name]
    here, there = run(source), graded(source)
    assert {test.status for test in (*here.tests, *there.tests)} == {status}
    assert re.search(message, there.tests[0].message)
    assert here.tests[0].message[:1000] == there.tests[0].message[:1000]


@pytest.mark.parametrize("name", CALLS)
def test_exceptions_in_a_call(graded, run, name):
    statement, status, message = CALLS[name]
    source = SOURCE.format(statement)
    here, there = run(source), graded(source)
    assert {test.status for test in (*here.tests, *there.tests)} == {status}
    assert re.search(message, there.tests[0].message)
