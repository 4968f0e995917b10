"""Loads a student's file in this process, and says what was wrong when that can't be done."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from pathlib import Path
from types import FrameType, ModuleType, TracebackType

from grader.code.compiled import compiled
from grader.code.graded_alone import builtins_of_student
from grader.code.out_of_memory import out_of_memory
from grader.code.says_stub import says_stub
from grader.course import SUBMISSION_FILE
from grader.errors import CannotLoad
from grader.result import Status

STUDENT_MODULE = "problem_"
"""How the names of modules that hold a student's code begin."""

_MOST_TEXT = 4000

# What the system says to code that isn't alone, and Python where there is no folder for such files.
_REFUSED = re.compile(r"\[Errno (?:1|13)\] |can't start new thread|No usable temporary directory")

# What Python says of a file that was saved as UTF-16 or in an older system's encoding.
_ENCODING = re.compile(r"null byte|codec can't decode|encoding declaration|unknown encoding")


def load_module(path: Path, name: str) -> ModuleType:
    """Run the Python file at `path` as a new module.

    The source is compiled afresh each time. Python's own import keeps byte code by time stamp and
    size, so that two saves within a second can run the older of the two.

    Raises:
        Whatever the file raises while it is compiled or run, and OSError when it can't be read.
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
    """Return what to tell of an exception that loading the student's file raised."""
    if says_stub(exception):
        return CannotLoad(Status.NOT_IMPLEMENTED, "problem.py stops before it is read to its end.")
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
    """Return whether the exception came while the file ran, not while it was read."""
    frames = traceback.extract_tb(exception.__traceback__)
    return any(frame.filename == str(path) for frame in frames)


def _unreadable(exception: SyntaxError | ValueError) -> str:
    """Return why a file can't be read, and in which line if that is known."""
    if not isinstance(exception, SyntaxError):
        return str(exception) + _remedy(str(exception))
    line = (exception.text or "").strip()
    where = f"\n  line {exception.lineno}" if exception.lineno else ""
    place = where + (f": {line}" if where and line else "")
    return f"{exception.msg}{place}{_remedy(str(exception.msg))}"


def _remedy(text: str) -> str:
    """Return what to do where Python can't read the bytes of a file or a string, or nothing."""
    if "unicodeescape" in text:
        return "\nIn quotes a backslash begins a special character. Write \\\\ for one itself."
    return "\nSave it as plain text in UTF-8, and try again." if _ENCODING.search(text) else ""


def text_of(exception: BaseException) -> str:
    """Return an exception's text, without the end of one that nobody would read."""
    return str(exception)[:_MOST_TEXT]


def named(exception: BaseException) -> str:
    """Return an exception's type and text."""
    text = text_of(exception)
    name = type(exception).__name__
    return f"{name}: {text}" if text else name


def alone(exception: BaseException) -> str:
    """Return what to say where the system refuses what graded files may not do; or nothing."""
    if not isinstance(exception, OSError | RuntimeError) or not _REFUSED.search(text_of(exception)):
        return ""
    return (
        f"\n{SUBMISSION_FILE} is graded by itself: without other files, threads, network and other "
        "programs."
    )


def place(tb: TracebackType | None) -> str:
    """Return where in the student's file an exception came from, as a line; or nothing."""
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
    """Return whether no student's code is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_students(frame):
        frame = frame.f_back
    return frame is None


def student_frame(tb: TracebackType | None) -> tuple[int, str, str, FrameType] | None:
    """Return line number, function, the line's text, and the innermost frame of the student's."""
    found = None
    for frame, number in traceback.walk_tb(tb):
        if is_students(frame):
            code = frame.f_code
            line = linecache.getline(code.co_filename, number).strip()
            found = number, code.co_qualname, line, frame
    return found
