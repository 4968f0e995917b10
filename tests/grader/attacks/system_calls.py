"""Attacks that call the C library through ctypes. This code is appended to a solution.

The solution's problem forbids no functions, so ctypes is available, and only the sandbox protects
the system. An attack returns if it succeeds, and raises OSError if the system refuses it.
"""

import ctypes
import functools
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
VICTIM, PORT, FOLDER = int("@VICTIM@"), int("@PORT@"), b"@FOLDER@"
PTRACE_ATTACH, PTRACE_SEIZE, NEW_USER, READ_MODE = 16, 0x4206, 0x10000000, 0o666


def call_c(name, *arguments):
    """Call a function of the C library and return its result; raise OSError if it is -1."""
    ctypes.set_errno(0)
    result = getattr(LIBC, name)(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def any_of(*attempts):
    """Call functions until one succeeds. If none succeeds, raise the last OSError."""
    for attempt in attempts:
        try:
            return attempt()
        except OSError as error:
            refusal = error
    raise refusal


def make_a_socket():
    kinds = [(2, 1), (2, 2), (1, 1), (16, 3), (17, 3), (40, 1)]
    return any_of(*(functools.partial(call_c, "socket", *kind, 0) for kind in kinds))


def read_a_file():
    paths = [b"/etc/passwd", b"/etc/shadow", FOLDER + b"/solution.py"]
    return any_of(*(functools.partial(call_c, "open", path, os.O_RDONLY) for path in paths))


def write_a_file():
    path, create = FOLDER + b"/results.json", os.O_CREAT | os.O_WRONLY
    return any_of(
        lambda: call_c("open", path, create, READ_MODE),
        lambda: call_c("unlink", FOLDER + b"/solution.py"),
        lambda: call_c("rename", FOLDER + b"/solution.py", path),
        lambda: call_c("mkdir", FOLDER + b"/made", READ_MODE),
    )


def start_a_process():
    def forked(name):
        if call_c(name) == 0:
            os._exit(0)

    return any_of(lambda: forked("fork"), lambda: call_c("unshare", NEW_USER))


def run_a_program():
    path = b"/bin/true"
    arguments = (ctypes.c_char_p * 2)(path, None)
    return call_c("execve", path, arguments, (ctypes.c_char_p * 1)(None))


def kill_another():
    return any_of(
        lambda: call_c("kill", VICTIM, signal.SIGKILL),
        lambda: call_c("kill", os.getppid(), signal.SIGKILL),
        lambda: call_c("kill", -1, 0),  # tests for permission without killing all processes
    )


def trace_another():
    return any_of(
        lambda: call_c("ptrace", PTRACE_ATTACH, VICTIM, None, None),
        lambda: call_c("ptrace", PTRACE_SEIZE, os.getppid(), None, None),
    )


def read_anothers_memory():
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    kept = ctypes.create_string_buffer(8)
    here = ctypes.byref(Vector(ctypes.addressof(kept), 8))
    there = ctypes.byref(Vector(id(None), 8))
    return any_of(
        *(
            functools.partial(call_c, name, process, here, 1, there, 1, 0)
            for name in ("process_vm_readv", "process_vm_writev")
            for process in (VICTIM, os.getppid())
        )
    )


def attack_first(attack, names):
    """Make each function of the solution run the attack before it returns its result."""

    def attacking(function):
        @functools.wraps(function)
        def attacks(*args, **kwargs):
            attack()
            return function(*args, **kwargs)

        return attacks

    for name in names:
        globals()[name] = attacking(globals()[name])
