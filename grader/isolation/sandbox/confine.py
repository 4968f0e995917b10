"""Confines a process for good: what it may read, which system calls it may make, what it may use.

For Linux only. Nothing here needs root, namespaces or a container. The order of the steps in
`confine` matters: each may take away what an earlier one needed.

- limits: memory, CPU seconds, open files, file sizes (rlimits)
- Landlock: of the file system only Python's and torch's own files can be opened, for reading
- seccomp: an allow-list of system calls; no sockets, no new processes or threads, no signals to
  others
- as root: a change to a user that owns nothing
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_FIRST_UID, _UIDS = 60500, 4000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_NO_NEW_PRIVS = 38


class SandboxError(Exception):
    """A process can't be confined on this machine; the text says what is missing."""


@dataclass(frozen=True)
class Limits:
    """What one worker may use.

    Attributes:
        memory: bytes of address space beyond what the process has already.
        cpu_seconds: seconds of CPU time.
        uid: the user to become, when started as root; None to stay.
        paths: files and folders that stay readable.
    """

    memory: int
    cpu_seconds: int
    uid: int | None
    paths: tuple[str, ...]


def confine(limits: Limits, parent: int) -> None:
    """Confine this process, for the rest of its life, to `limits`.

    Args:
        limits: what stays possible.
        parent: the process that started this one; this one dies with it.

    Raises:
        SandboxError: a layer can't be put up. The process must then not run student code.
        OSError: the same.
    """
    die_with(parent)
    if limits.uid is not None:
        _become(limits.uid)
        die_with(parent)  # a change of user clears it
    limit_resources(limits.memory, limits.cpu_seconds, private_uid=limits.uid is not None)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    hide_from_debuggers()
    restrict_files(limits.paths)
    os.environ.clear()
    # Not in os.environ: for libraries that would start threads as soon as they are loaded.
    os.putenv("OMP_NUM_THREADS", "1")
    restrict_calls()


def hide_from_debuggers() -> None:
    """Keep this process's memory and /proc entries from other processes of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def pick_uid(process: int) -> int:
    """Return a user id that nobody has, another one for each of the processes alive."""
    return _FIRST_UID + process % _UIDS


def address_space() -> int:
    """Return how many bytes of address space this process has."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


# Limits


def limit_resources(memory: int, cpu_seconds: int, *, private_uid: bool) -> None:
    """Limit memory, CPU time and files.

    Args:
        memory: bytes of address space beyond what the process has now. Never an absolute number:
            torch alone maps more than half a gigabyte.
        cpu_seconds: after these the process gets SIGXCPU, a second later SIGKILL.
        private_uid: whether the user is this process's alone, so that its threads can be counted.
    """
    limits = {
        resource.RLIMIT_AS: (address_space() + memory,) * 2,
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_NOFILE: (64, 64),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MEMLOCK: (0, 0),
        resource.RLIMIT_MSGQUEUE: (0, 0),
    }
    if private_uid:
        limits[resource.RLIMIT_NPROC] = (64, 64)
    for number, limit in limits.items():
        resource.setrlimit(number, limit)


# User and parent


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, by whatever means.

    Args:
        parent: the process that started this one, should it have ended already.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _become(uid: int) -> None:
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def may_become_other(uid: int, paths: Iterable[str]) -> bool:
    """Return whether this process can become `uid` and would still be able to read `paths`.

    An interpreter below a private home directory isn't readable for anybody else.
    """
    if os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setegid(uid)
        os.seteuid(uid)
        return all(os.access(p, os.R_OK, effective_ids=True) for p in paths)
    except OSError:
        return False
    finally:
        os.seteuid(0)
        os.setegid(0)


# Landlock: three system calls, with the same numbers on every architecture.

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3


def landlock_version() -> int:
    """Return the version of Landlock that the kernel enforces; 0 when it has none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def restrict_files(paths: Iterable[str]) -> None:
    """Make everything but `paths` unreadable, and everything unwritable.

    Raises:
        SandboxError: the kernel has no Landlock.
        OSError: it refuses.
    """
    version = landlock_version()
    if version == 0:
        raise SandboxError("the kernel has no Landlock")
    rights = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    network = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    # Fields that this version doesn't know must be left out or 0.
    attributes = struct.pack("=QQQ", (1 << rights) - 1, network, scopes)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint(0))
    for path in paths:
        _allow_reading(ruleset, path)
    _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what can't be opened can't be used either
    rights = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
    rule = struct.pack("=Qi", rights, opened)
    _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0))
    os.close(opened)


def readable_paths(secret: Iterable[str], wanted: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what a Python with torch has to read, without anything that is `secret`.

    Args:
        secret: files and folders that must stay unreadable. A folder that holds one of them is
            replaced by its other entries.
        wanted: folders that are needed beyond Python's own.
    """
    hidden = [Path(s).resolve() for s in secret]
    # Files that loading a library looks at, and devices without content.
    found = {"/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom"}
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    for folder in {*folders, *wanted, *_library_folders()}:
        found.update(str(path) for path in _without(Path(folder).resolve(), hidden))
    return tuple(sorted(found))


def _library_folders() -> set[str]:
    """Return the folders of the shared libraries that this process has loaded."""
    folders = set()
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[1] + line.partition("/")[2]
        if ".so" in os.path.basename(path):
            folders.add(os.path.dirname(path))
    return folders


def _without(path: Path, hidden: list[Path]) -> list[Path]:
    """Return `path`, or those of its entries that neither are nor hold anything hidden."""
    if any(path.is_relative_to(secret) for secret in hidden):
        return []
    if not any(secret.is_relative_to(path) for secret in hidden):
        return [path]
    try:
        return [kept for entry in path.iterdir() for kept in _without(entry, hidden)]
    except OSError:
        return []


# seccomp: a program for the kernel's packet filter that looks at each system call.

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_Instruction = tuple[int, int, int, int]


@dataclass(frozen=True)
class _Machine:
    """An architecture: its mark in the filter, and its numbers for the system calls we name."""

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

_FCNTL = (0, 1, 2, 3, 4, 1030)  # duplicate and read or set flags; no signals, no locks, no leases
_IOCTL = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how much is there, flags
_PRCTL = (15, 16)  # the name of a thread


def calls_restrictable() -> bool:
    """Return whether there is a table of system calls for this machine, and a kernel to use it."""
    machine = _MACHINES.get(platform.machine())
    if machine is None or struct.calcsize("P") != 8:
        return False
    # Ask whether the action "return an errno" is known; that changes nothing.
    action = ctypes.c_uint32(_ERRNO)
    return bool(_libc.syscall(machine.seccomp, 2, 0, ctypes.byref(action)) == 0)


def restrict_calls() -> None:
    """Allow this process the listed system calls only; any other one fails with EPERM.

    Among those others are all that make a process or a thread.

    Raises:
        SandboxError: there is no table for this machine.
        OSError: the kernel refuses.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise SandboxError(f"there is no table of system calls for {platform.machine()}")
    program = _program(machine)
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    _call(machine.seccomp, ctypes.c_uint(1), ctypes.c_uint(0), filter_)


def _program(machine: _Machine) -> list[_Instruction]:
    calls = dict(machine.numbers)
    conditions: dict[str, list[_Instruction]] = {
        "fcntl": _argument_in(1, _FCNTL),
        "ioctl": _argument_in(1, _IOCTL),
        "prctl": _argument_in(0, _PRCTL),
        "prlimit64": _argument_in(0, (0,)),
        "tgkill": _argument_in(0, (os.getpid(),)),
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
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    # This also refuses the 32-bit calls of x86-64, whose numbers have a high bit set.
    return [*program, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _argument_in(position: int, values: Iterable[int]) -> list[_Instruction]:
    # Both halves of the 64 bits of an argument; the high one must be 0.
    low, high = _ARGUMENTS_AT + 8 * position, _ARGUMENTS_AT + 8 * position + 4
    checks: list[_Instruction] = [
        (_LOAD, 0, 0, high),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_LOAD, 0, 0, low),
    ]
    for value in values:
        checks += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*checks, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


# What this machine can do


def missing() -> str:
    """Return what this machine lacks for the sandbox, in words; empty when it lacks nothing."""
    if not calls_restrictable():
        return f"seccomp can't be used here ({platform.machine()})"
    if landlock_version() == 0:
        return "the kernel doesn't offer Landlock (Linux 5.13 or later, enabled at boot)"
    return ""


# The C library


_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return result


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")
