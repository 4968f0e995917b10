"""Exceptions of the student's code, and files that can't be used."""

import pytest
import torch

from grader.code.forbidden import Guard
from grader.code.loading import judge_load, load_module
from grader.errors import CannotLoad
from grader.result import Status
from grader.run.verdict import judge


@pytest.mark.parametrize("kind", ["ValueError", "IndexError", "KeyError", "ZeroDivisionError"])
def test_exceptions_come_back_by_their_built_in_type(opened, kind):
    problem = opened(f"def f(): raise {kind}('too bad')")
    expected = eval(kind)
    with pytest.raises(expected, match="too bad") as caught:
        problem.f()
    assert type(caught.value).__name__ == kind
    assert str(caught.value) == str(expected("too bad"))
    assert caught.value.student_place == (1, "f", f"def f(): raise {kind}('too bad')")


def test_the_student_sees_where_it_happened(opened):
    problem = opened(
        "class A:\n    def f(self):\n        return 1 / 0\ndef g():\n    return A().f()"
    )
    with pytest.raises(ZeroDivisionError) as caught:
        problem.g()
    last = caught.traceback[-1]
    assert (last.lineno + 1, last.frame.code.raw.co_qualname) == (3, "A.f")


def test_own_exceptions_are_known_by_name_and_ancestor(opened):
    problem = opened("class Mine(ValueError): pass\ndef f(): raise Mine('x' * 10000)")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        problem.f()
    assert type(caught.value).__name__ == "Mine"
    assert len(str(caught.value)) == 4000


@pytest.mark.parametrize(
    "what", ["SystemExit(0)", "KeyboardInterrupt()", "GeneratorExit()", "BaseException('x')"]
)
def test_exceptions_that_would_end_something_are_ordinary_errors(opened, what):
    problem = opened(f"def f(): raise {what}")
    with pytest.raises(RuntimeError) as caught:
        problem.f()
    assert type(caught.value).__name__ == what.split("(")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "ExceptionGroup('several', [ValueError('one')])",
        "BaseExceptionGroup('several', [SystemExit(0)])",
        "type('not a name <b>', (ValueError,), {})('several')",
        "type('', (ValueError,), {})('several')",
        "type('4', (ValueError,), {})('several')",
    ],
)
def test_exceptions_of_unusual_classes_are_ordinary_errors(opened, what):
    problem = opened(f"def f(): raise {what}")
    for _ in range(2):
        with pytest.raises(Exception, match="several") as caught:
            problem.f()
        assert judge(caught.value, Guard(())).status is Status.ERROR
        assert caught.value.student_place[:2] == (1, "f")


@pytest.mark.parametrize(
    "what",
    [
        "mmap.mmap(-1, 1 << 50)",
        "raise_(OSError(12, 'no'))",
        "raise_(RuntimeError('DefaultCPUAllocator: not enough memory'))",
    ],
)
def test_what_the_system_says_of_memory_is_out_of_memory(opened, tmp_path, what):
    source = f"import mmap\ndef raise_(e): raise e\ndef f(): return {what}\n"
    path = tmp_path / "problem.py"
    path.write_text(source)
    for problem, remote in ((opened(source), True), (local(path), False)):
        with pytest.raises((MemoryError, OSError, RuntimeError)) as caught:
            problem.f()
        verdict = judge(caught.value, Guard(()), remote=remote)
        assert verdict.status is Status.MEMORY


@pytest.mark.slow
def test_what_is_gone_later_is_an_error(opened):
    problem = opened("def f():\n    del globals()['f']\n    return 1")
    function = problem.f
    assert function() == 1
    with pytest.raises(AttributeError, match="no attribute 'f'"):
        function()


def test_the_name_of_code_is_one_line(opened):
    problem = opened(
        "def f(): raise ValueError\nf.__code__ = f.__code__.replace(co_qualname='a\\n# b')"
    )
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        problem.f()
    assert caught.value.student_place[1] == "a # b"


def test_an_exception_that_cannot_be_printed(opened):
    problem = opened(
        """
        class Bad(ValueError):
            def __str__(self): raise SystemExit
        def f(): raise Bad
        def g(): raise ValueError(chr(27) + "[2J")
        """
    )
    with pytest.raises(ValueError):  # noqa: PT011
        problem.f()
    with pytest.raises(ValueError, match="\ufffd"):
        problem.g()


# Files that can't be used


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("def f(:\n  pass", Status.ERROR, r"can't be read as Python: .*\n  line 1: def"),
        ("x = 1\nraise ValueError('no')", Status.ERROR, r"ValueError: no\n  problem.py:2: "),
        ("raise NotImplementedError", Status.NOT_IMPLEMENTED, "stops before it is read to its end"),
        ("import nowhere_at_all", Status.ERROR, "Error: problem.py can't import nowhere"),
        ("import os\nos._exit(0)", Status.CRASH, "can't be imported. Your code ended its process"),
        ("raise SystemExit", Status.ERROR, "SystemExit"),
        ("x = '\0'", Status.ERROR, "null bytes"),
        ("x = bytearray(10 ** 13)", Status.MEMORY, "out of memory.*\n  problem.py:1: x"),
        ("import json\nexec('x =')", Status.ERROR, "stops while it is being imported"),
        ("(" * 100000, Status.ERROR, "too many nested|problem.py"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_loaded(opened, source, status, message):
    with pytest.raises(CannotLoad, match=message) as caught:
        opened(source)
    assert caught.value.status is status


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    ["x = " + "-" * 10**5 + "1", "x = a" + ".a" * 10**5, "if 0: 0\n" + "elif 0: 0\n" * 10**4],
    ids=["signs", "attributes", "branches"],
)
def test_a_file_that_is_nested_too_deeply_is_no_python(opened, tmp_path, source):
    """Its memory was enough; in process, too."""
    path = tmp_path / "problem.py"
    path.write_text(source)
    with pytest.raises(CannotLoad) as graded:
        opened(source)
    for told in (graded.value, judge_load(load_error(path), path)):
        assert told.status is Status.ERROR
        assert str(told) == "problem.py can't be read as Python: it is nested too deeply"


def load_error(path):
    """Return what loading a file raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        load_module(path, "problem_nested")
    return caught.value


@pytest.mark.parametrize(
    "source",
    [b"x = '\xff'", b"# \xe9", "x = 'é'".encode("utf-16"), b"# coding: klingon\nx = 1"],
    ids=["Latin-1", "Latin-1 in a comment", "UTF-16", "unknown"],
)
def test_a_file_in_another_encoding_is_told_to_be_saved_as_utf8(sandbox, source):
    with pytest.raises(CannotLoad, match="can't be read as Python: [^$]*\nSave it as .* UTF-8"):
        sandbox.open(source)


def test_a_backslash_that_python_cannot_read_is_no_matter_of_encoding(sandbox):
    with pytest.raises(CannotLoad, match=r"line 2: .*\nIn quotes a backslash .*") as told:
        sandbox.open(b'import os\nplace = "C:\\Users\\me"')
    assert "UTF-8" not in str(told.value)


@pytest.mark.parametrize(
    "source", ["# coding: latin-1\nx = 'é'".encode("latin-1"), "x = 'é'".encode("utf-8-sig")]
)
def test_encodings_are_pythons_own(sandbox, source):
    assert sandbox.open(source).x == "é"


@pytest.mark.parametrize(
    "name", ["not an identifier", "a" * 200, "\ud800", 7, None, ""], ids=ascii
)  # fmt: skip
def test_names_that_are_none_are_left_out(opened, name):
    problem = opened(f"globals()[{name!r}] = print\ndef f(): return 1")
    assert problem.f() == 1
    assert problem._file.names() == ["f"]


def test_many_names_do_not_hide_the_last(opened):
    problem = opened("for n in range(3000): globals()[f'g{n}'] = print\ndef f(): return 1")
    assert problem.f() == 1


NOT_WRITTEN = {
    "as the stub": ("def f(x):\n    raise NotImplementedError\n", "not_implemented"),
    "with a text": ("def f(x):\n    raise NotImplementedError('later')\n", "not_implemented"),
    "while it loads": ("def f(x):\n    raise NotImplementedError\nf(1)\n", "not_implemented"),
    "no forward": (
        "from torch import nn\nclass M(nn.Module): pass\ndef f(x): return M()(x)\n",
        "error",
    ),
    "a statement of torch's": (
        "import torch\nfrom torch.autograd import Function\nclass F(Function): pass\n"
        "def f(x): return F.apply(x)\n",
        "error",
    ),
    "torch": ("import torch\ndef f(x): return torch.ones(2).to('lazy')\n", "error"),
    "torch, while it loads": (
        "import torch\ntorch.ones(2).to('lazy')\ndef f(x): return x\n",
        "error",
    ),
    "refused": (
        "def f(x):\n    try: open('/etc/nothing')\n    except OSError: raise NotImplementedError\n",
        "error",
    ),
    "refused, while it loads": (
        "try: open('/etc/nothing')\nexcept OSError: raise NotImplementedError\ndef f(x): 0\n",
        "error",
    ),
}


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_only_what_a_stub_raises_means_not_written(opened, tmp_path, name):
    """A file that was stopped attempted something, and its message says what; in process too."""
    source, status = NOT_WRITTEN[name]
    path = tmp_path / "problem.py"
    path.write_text(source)
    for load in (lambda: local(path), lambda: opened(source)):
        try:
            load().f(torch.ones(2))
        except Exception as exception:
            verdict = judge(exception, Guard(()))
        assert verdict.status == status
        assert ("NotImplementedError" in verdict.message) == (status == "error")
    assert ("/etc/nothing" in verdict.message) == ("refused" in name)


def local(path):
    try:
        return load_module(path, "problem_of_a_test")
    except Exception as exception:
        raise judge_load(exception, path) from None
