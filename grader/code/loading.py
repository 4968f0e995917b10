"""Load a student's file in this process, and describe exceptions of its code."""

from __future__ import annotations

import dis
import errno
import linecache
import re
import sys
import traceback
from pathlib import Path
from types import FrameType, ModuleType, TracebackType

from grader.code.graded_alone import builtins_of_student, compiled
from grader.course import SUBMISSION_FILE
from grader.errors import CannotLoad
from grader.result import Status

STUDENT_MODULE = "problem_"
"""The prefix of the names of modules that contain student code."""

_MOST_TEXT = 4000

# Error messages for actions that the system refuses in grading. The last message means that no
# temporary folder can be written.
_REFUSED = re.compile(r"\[Errno (?:1|13)\] |can't start new thread|No usable temporary directory")

# Python's error messages for a file in UTF-16 or in an old encoding.
_ENCODING = re.compile(r"null byte|codec can't decode|encoding declaration|unknown encoding")


def load_module(path: Path, name: str) -> ModuleType:
    """Run the Python file at `path` as a new module.

    The file is compiled each time. An import could run an older version if the file was saved twice
    within a second, because Python's cache compares only time stamps and sizes.

    Raises:
        OSError: the file can't be read.
        BaseException: the file can't be compiled, or it raised an exception.
    """
    module = ModuleType(name)
    module.__file__ = str(path)
    _, code, _ = compiled(path.read_bytes(), str(path))
    sys.modules[name] = module
    if name.startswith(STUDENT_MODULE):
        module.__dict__["__builtins__"] = builtins_of_student()
    exec(code, module.__dict__)
    return module


def judge_load(exception: BaseException, path: Path) -> CannotLoad:
    """Return the verdict on a student's file that raised an exception while it was loaded."""
    if is_stub_error(exception):
        text = f"{path.name} raises NotImplementedError while it is being imported."
        return CannotLoad(Status.NOT_IMPLEMENTED, text)
    where = location(exception.__traceback__)
    if out_of_memory(exception):
        text = f"{path.name} runs out of memory while it is being imported."
        return CannotLoad(Status.MEMORY, text + where)
    if isinstance(exception, SyntaxError | ValueError) and not _runs(exception, path):
        text = f"{path.name} can't be read as Python: {_unreadable(exception)}"
        return CannotLoad(Status.ERROR, text)
    return CannotLoad(
        Status.ERROR,
        f"{path.name} stops while it is being imported.\n{named(exception)}{where}"
        f"{about_refusal(exception)}",
    )


def _runs(exception: BaseException, path: Path) -> bool:
    """Return whether the exception was raised while the file ran, not while it was compiled."""
    frames = traceback.extract_tb(exception.__traceback__)
    return any(frame.filename == str(path) for frame in frames)


def _unreadable(exception: SyntaxError | ValueError) -> str:
    """Return the reason why Python can't compile a file, with the line if it is known."""
    if not isinstance(exception, SyntaxError):
        return str(exception) + _remedy(str(exception))
    line = (exception.text or "").strip()
    where = f"\n  line {exception.lineno}" if exception.lineno else ""
    place = where + (f": {line}" if where and line else "")
    return f"{exception.msg}{place}{_remedy(str(exception.msg))}"


def _remedy(text: str) -> str:
    """Return advice if Python can't decode the file or a string in it, otherwise ""."""
    if "unicodeescape" in text:
        return "\nIn quotes, a backslash begins a special character. Write \\\\ for a backslash."
    return "\nSave it as plain text in UTF-8, and try again." if _ENCODING.search(text) else ""


def exception_text(exception: BaseException) -> str:
    """Return an exception's text, shortened if it is long.

    Return an empty string if `__str__` of the exception raises an exception.
    """
    try:
        return str(exception)[:_MOST_TEXT]
    except BaseException:
        return ""


def named(exception: BaseException) -> str:
    """Return an exception's type and text, such as "ValueError: too small"."""
    text = exception_text(exception)
    name = type(exception).__name__
    return f"{name}: {text}" if text else name


def about_refusal(exception: BaseException) -> str:
    """Return a sentence about grading if the system refused an action, otherwise ""."""
    if not isinstance(exception, OSError | RuntimeError) or not _REFUSED.search(
        exception_text(exception)
    ):
        return ""
    return (
        f"\n{SUBMISSION_FILE} is graded alone, without other files, threads, network or other "
        "programs."
    )


def location(tb: TracebackType | None) -> str:
    """Return the line of the student's file that raised an exception, or "" if it is unknown.

    The text starts with a line break and contains the line's number, function and code.
    """
    frame = student_frame(tb)
    if frame is None:
        return ""
    number, function, line, _ = frame
    inside = "" if function == "<module>" else f", in {function}"
    return f"\n  {SUBMISSION_FILE}:{number}{inside}: {line}"


def is_students(frame: FrameType) -> bool:
    """Return whether a frame runs a student's code."""
    return bool(frame.f_globals.get("__name__", "").startswith(STUDENT_MODULE))


def no_caller_is_student() -> bool:
    """Return whether none of the functions on the call stack is student code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_students(frame):
        frame = frame.f_back
    return frame is None


def student_frame(tb: TracebackType | None) -> tuple[int, str, str, FrameType] | None:
    """Find the innermost line of student code in a traceback.

    Return its number, function, text and frame, or None if there is none.
    """
    innermost = None
    for frame, number in traceback.walk_tb(tb):
        if is_students(frame):
            code = frame.f_code
            line = linecache.getline(code.co_filename, number).strip()
            innermost = number, code.co_qualname, line, frame
    return innermost


_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc")
"""Texts in the RuntimeErrors that torch raises if memory ran out."""


def out_of_memory(exception: BaseException) -> bool:
    """Return whether an exception was raised because memory ran out."""
    if isinstance(exception, OSError):
        return exception.errno == errno.ENOMEM
    if isinstance(exception, RuntimeError):
        return any(sign in exception_text(exception) for sign in _OUT_OF_MEMORY)
    return isinstance(exception, MemoryError)


_RAISES = dis.opmap["RAISE_VARARGS"]


def is_stub_error(exception: BaseException) -> bool:
    """Return whether a `raise` statement raised NotImplementedError, as in a stub.

    The result is False if torch raised the exception, for example for a missing device or for a
    module without a method `forward`.
    """
    if not isinstance(exception, NotImplementedError):
        return False
    step = exception.__traceback__
    if step is None:
        return True
    while step.tb_next is not None:
        step = step.tb_next
    is_torchs = str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"
    raises = step.tb_lasti < 0 or step.tb_frame.f_code.co_code[step.tb_lasti] == _RAISES
    return raises and not is_torchs
