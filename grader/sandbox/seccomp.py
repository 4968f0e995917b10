"""Restrict system calls with seccomp: the kernel runs a filter program before each system call."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from grader.sandbox.libc import system_call, try_system_call

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_Instruction = tuple[int, int, int, int]
_ALLOWED: _Instruction = (_RETURN, 0, 0, _ALLOW)
_REFUSED: _Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)


@dataclass(frozen=True)
class _Machine:
    """A processor architecture.

    Attributes:
        mark: the id of the architecture in a filter.
        seccomp: the number of the system call that installs a filter.
        numbers: the numbers of the allowed system calls, by name.
    """

    mark: int
    seccomp: int
    numbers: dict[str, int]


def _table(text: str) -> dict[str, int]:
    pairs = (entry.split("=") for entry in text.split())
    return {name: int(number) for name, number in pairs}


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        _table("""
        read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10
        munmap=11 brk=12 rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 ioctl=16 pread64=17
        readv=19 writev=20 access=21 select=23 sched_yield=24 mremap=25 madvise=28 dup=32 dup2=33
        nanosleep=35 getpid=39 sendto=44 recvfrom=45 exit=60 uname=63 fcntl=72 getcwd=79
        readlink=89 gettimeofday=96 getrlimit=97 getrusage=98 sysinfo=99 times=100 getuid=102
        getgid=104 geteuid=107 getegid=108 getppid=110 getgroups=115 sigaltstack=131 prctl=157
        gettid=186 time=201 futex=202 sched_getaffinity=204 getdents64=217 set_tid_address=218
        restart_syscall=219 clock_gettime=228 clock_getres=229 clock_nanosleep=230 exit_group=231
        tgkill=234 openat=257 newfstatat=262 readlinkat=267 faccessat=269 pselect6=270 ppoll=271
        set_robust_list=273 dup3=292 prlimit64=302 getcpu=309 getrandom=318 membarrier=324
        statx=332 rseq=334 faccessat2=439
        """),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        _table("""
        getcwd=17 dup=23 dup3=24 fcntl=25 ioctl=29 faccessat=48 openat=56 close=57 getdents64=61
        lseek=62 read=63 write=64 readv=65 writev=66 pread64=67 pselect6=72 ppoll=73 readlinkat=78
        newfstatat=79 fstat=80 exit=93 exit_group=94 set_tid_address=96 futex=98
        set_robust_list=99 nanosleep=101 clock_gettime=113 clock_getres=114 clock_nanosleep=115
        sched_getaffinity=123 sched_yield=124 restart_syscall=128 tgkill=131 sigaltstack=132
        rt_sigaction=134 rt_sigprocmask=135 rt_sigreturn=139 times=153 getgroups=158 uname=160
        getrlimit=163 getrusage=165 prctl=167 getcpu=168 gettimeofday=169 getpid=172 getppid=173
        getuid=174 geteuid=175 getgid=176 getegid=177 gettid=178 sysinfo=179 sendto=206
        recvfrom=207 brk=214 munmap=215 mremap=216 mmap=222 mprotect=226 madvise=233
        prlimit64=261 getrandom=278 membarrier=283 statx=291 rseq=293 faccessat2=439
        """),
    ),
}

_FCNTL = (0, 1, 2, 3, 4, 1030)  # duplicate a descriptor, read or set its flags; no signals or locks
_IOCTL = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)  # terminal test, number of unread bytes, flags
_PRCTL = (15, 16)  # the name of a thread


def usable() -> bool:
    """Return whether `_MACHINES` contains this machine and the kernel supports seccomp."""
    machine = _MACHINES.get(platform.machine())
    if machine is None or struct.calcsize("P") != 8:
        return False
    # Only query whether the kernel supports the action "return an errno".
    action = ctypes.c_uint32(_ERRNO)
    return try_system_call(machine.seccomp, 2, 0, ctypes.byref(action)) == 0


def restrict_calls() -> None:
    """Allow this process only the system calls in the table; other calls then fail with EPERM.

    The table contains no system call that starts a process or a thread.

    Raises:
        OSError: there is no table for this machine, or the kernel refuses the filter.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(f"there is no table of system calls for {platform.machine()}")
    program = _program(machine)
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    system_call(machine.seccomp, ctypes.c_uint(1), ctypes.c_uint(0), filter_)


def _program(machine: _Machine) -> list[_Instruction]:
    calls = dict(machine.numbers)
    conditions: dict[str, list[_Instruction]] = {
        "fcntl": _argument_in(1, _FCNTL),
        "ioctl": _argument_in(1, _IOCTL),
        "prctl": _argument_in(0, _PRCTL),
        # The process may only read its limits: with a lower limit, the kernel could kill it.
        "prlimit64": [*_argument_is(0, 0), *_argument_is(2, 0), _ALLOWED],
        # The process may send itself signals, except SIGKILL, which the grader would attribute to
        # the machine.
        "tgkill": [*_argument_is(0, os.getpid()), *_argument_is_not(2, signal.SIGKILL), _ALLOWED],
        # The process may send only to its connected peer and without flags.
        "sendto": [*_argument_is(3, 0), *_argument_is(4, 0), _ALLOWED],
    }
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, machine.mark),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for name, condition in conditions.items():
        program.append((_EQUAL, 0, len(condition), calls.pop(name)))
        program += condition
    for number in calls.values():
        program += [(_EQUAL, 0, 1, number), _ALLOWED]
    # This also refuses 32-bit system calls on x86-64, because their numbers have a high bit set.
    return [*program, _REFUSED]


def _argument_in(position: int, values: Iterable[int]) -> list[_Instruction]:
    """Return instructions that allow a call if an argument is in `values`, or else refuse it."""
    checks = [(_LOAD, 0, 0, _high(position)), (_EQUAL, 1, 0, 0), _REFUSED]
    checks += [(_LOAD, 0, 0, _low(position))]
    for value in values:
        checks += [(_EQUAL, 0, 1, value), _ALLOWED]
    return [*checks, _REFUSED]


def _argument_is(position: int, value: int) -> list[_Instruction]:
    """Return instructions that refuse a call unless an argument has this value."""
    high = [(_LOAD, 0, 0, _high(position)), (_EQUAL, 1, 0, 0), _REFUSED]
    return [*high, (_LOAD, 0, 0, _low(position)), (_EQUAL, 1, 0, value), _REFUSED]


def _argument_is_not(position: int, value: int) -> list[_Instruction]:
    """Return instructions that refuse a call if an argument of 32 bits has this value."""
    return [(_LOAD, 0, 0, _low(position)), (_EQUAL, 0, 1, value), _REFUSED]


def _low(position: int) -> int:
    return _ARGUMENTS_AT + 8 * position


def _high(position: int) -> int:
    return _ARGUMENTS_AT + 8 * position + 4
