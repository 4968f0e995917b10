"""Load a student's file in this process, and describe errors of loading."""

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
"""The prefix of the names of modules with student code."""

_MOST_TEXT = 4000

# Texts of errors for actions that the system refuses in grading. The last text is Python's error
# for a temporary folder that can't be written.
_REFUSED = re.compile(r"\[Errno (?:1|13)\] |can't start new thread|No usable temporary directory")

# Python's errors for a file in UTF-16 or an old encoding.
_ENCODING = re.compile(r"null byte|codec can't decode|encoding declaration|unknown encoding")


def load_module(path: Path, name: str) -> ModuleType:
    """Run the Python file at `path` as a new module.

    The source is compiled each time. Python's import caches byte code by time stamp and size, so
    after two saves within a second it could run the older file.

    Raises:
        OSError: the file can't be read.
        BaseException: any exception of compiling or running the file.
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
    """Return the verdict for an exception that loading the student's file raised."""
    if says_stub(exception):
        text = f"{path.name} raises NotImplementedError while it is being imported."
        return CannotLoad(Status.NOT_IMPLEMENTED, text)
    where = place(exception.__traceback__)
    if out_of_memory(exception):
        text = f"{path.name} runs out of memory while it is being imported."
        return CannotLoad(Status.MEMORY, text + where)
    if isinstance(exception, SyntaxError | ValueError) and not _runs(exception, path):
        text = f"{path.name} can't be read as Python: {_unreadable(exception)}"
        return CannotLoad(Status.ERROR, text)
    return CannotLoad(
        Status.ERROR,
        f"{path.name} stops while it is being imported.\n{named(exception)}{where}"
        f"{alone(exception)}",
    )


def _runs(exception: BaseException, path: Path) -> bool:
    """Return whether the exception was raised while the file ran, not while it was compiled."""
    frames = traceback.extract_tb(exception.__traceback__)
    return any(frame.filename == str(path) for frame in frames)


def _unreadable(exception: SyntaxError | ValueError) -> str:
    """Return the reason why a file can't be read, with the line if it is known."""
    if not isinstance(exception, SyntaxError):
        return str(exception) + _remedy(str(exception))
    line = (exception.text or "").strip()
    where = f"\n  line {exception.lineno}" if exception.lineno else ""
    place = where + (f": {line}" if where and line else "")
    return f"{exception.msg}{place}{_remedy(str(exception.msg))}"


def _remedy(text: str) -> str:
    """Return advice on a file or string that Python can't decode, or an empty string."""
    if "unicodeescape" in text:
        return "\nIn quotes, a backslash begins a special character. Write \\\\ for a backslash."
    return "\nSave it as plain text in UTF-8, and try again." if _ENCODING.search(text) else ""


def text_of(exception: BaseException) -> str:
    """Return an exception's text, shortened; empty if its `__str__` raises any exception."""
    try:
        return str(exception)[:_MOST_TEXT]
    except BaseException:
        return ""


def named(exception: BaseException) -> str:
    """Return an exception's type and text."""
    text = text_of(exception)
    name = type(exception).__name__
    return f"{name}: {text}" if text else name


def alone(exception: BaseException) -> str:
    """Return a sentence about grading if the system refused an action, or an empty string."""
    if not isinstance(exception, OSError | RuntimeError) or not _REFUSED.search(text_of(exception)):
        return ""
    return (
        f"\n{SUBMISSION_FILE} is graded by itself: without other files, threads, network and other "
        "programs."
    )


def place(tb: TracebackType | None) -> str:
    """Return a line with the place in the student's file that raised an exception, or empty."""
    frame = student_frame(tb)
    if frame is None:
        return ""
    number, function, line, _ = frame
    inside = "" if function == "<module>" else f", in {function}"
    return f"\n  {SUBMISSION_FILE}:{number}{inside}: {line}"


def is_students(frame: FrameType) -> bool:
    """Return whether a frame runs a student's code."""
    return bool(frame.f_globals.get("__name__", "").startswith(STUDENT_MODULE))


def not_for_a_student() -> bool:
    """Return whether none of the callers is student code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_students(frame):
        frame = frame.f_back
    return frame is None


def student_frame(tb: TracebackType | None) -> tuple[int, str, str, FrameType] | None:
    """Return line number, function, text and frame of the innermost line of student code."""
    innermost = None
    for frame, number in traceback.walk_tb(tb):
        if is_students(frame):
            code = frame.f_code
            line = linecache.getline(code.co_filename, number).strip()
            innermost = number, code.co_qualname, line, frame
    return innermost


_SIGNS = ("can't allocate memory", "not enough memory", "std::bad_alloc")
"""Parts of the texts of torch's errors for missing memory, which are plain RuntimeErrors."""


def out_of_memory(exception: BaseException) -> bool:
    """Return whether an exception was raised because memory ran out."""
    if isinstance(exception, OSError):
        return exception.errno == errno.ENOMEM
    if isinstance(exception, RuntimeError):
        return any(sign in text_of(exception) for sign in _SIGNS)
    return isinstance(exception, MemoryError)


_RAISES = dis.opmap["RAISE_VARARGS"]


def says_stub(exception: BaseException) -> bool:
    """Return whether an exception is a NotImplementedError of a `raise` statement, as in a stub.

    torch raises the same type for unsupported actions, for example on a missing device, and for a
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
