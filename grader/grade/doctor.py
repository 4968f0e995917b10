"""Check this machine for the course: Python, torch, processors, and isolation."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from grader.course import own_course
from grader.errors import InternalError
from grader.grade.processes import call_apart
from grader.grade.provenance import torch_cuda, torch_version
from grader.grade.settings import default_jobs
from grader.result import Isolation
from grader.text import counted

_NEEDED = (3, 11)
_MB_PER_JOB = 1500
"""The memory in MB that each job of `grade` needs.

A job consists of a process with the tests, a prefork server and a worker.
"""


@dataclass(frozen=True)
class Finding:
    """The result of one check of the machine.

    Attributes:
        name: the checked item, such as "Python".
        state: the state of this item.
        advice: a recommendation to the user; empty if the item is in order.
    """

    name: str
    state: str
    advice: str = ""


@dataclass(frozen=True)
class Examination:
    """The findings of `grader doctor`.

    Attributes:
        findings: the results of all checks, in the order to show them.
        level: the level of isolation that this machine reaches: "sandbox" or "process".
    """

    findings: list[Finding]
    level: str

    @property
    def advice(self) -> list[str]:
        """The recommendations of all findings."""
        return [finding.advice for finding in self.findings if finding.advice]

    @property
    def can_grade(self) -> bool:
        """Whether `grader grade` can use a sandbox here."""
        return self.level == "sandbox"


def examine() -> Examination:
    """Check the machine. This starts the sandbox and tests it with attacks, as `grade` does."""
    level, reason = _isolation()
    findings = [_course(), _python(), _torch(), _cores(), _memory(), *_layers()]
    return Examination([*findings, _level(level, reason)], level)


# What runs


def _course() -> Finding:
    parts = Counter(problem.part.id for problem in own_course().problems())
    texts = (f"part {part} with {counted(number, 'problem')}" for part, number in parts.items())
    return Finding("Course", ", ".join(texts))


def _python() -> Finding:
    version = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _NEEDED:
        return Finding("Python", version, "The course needs Python 3.11 or later.")
    return Finding("Python", version)


def _torch() -> Finding:
    build = f"CUDA {torch_cuda()}" if torch_cuda() else "CPU"
    # Grading doesn't use a GPU, so the build matters only for its size.
    return Finding("PyTorch", f"{torch_version()} ({build} build)")


def _cores() -> Finding:
    jobs = default_jobs()
    return Finding("Cores", f"{jobs}, so `grade` runs {counted(jobs, 'job')} at the same time")


def _memory() -> Finding:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return Finding("Memory", "not known here")
    mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    size = f"{mb / 1024:.1f} GB"
    jobs = max(1, mb // _MB_PER_JOB)
    if jobs < default_jobs():
        return Finding("Memory", size, f"Grade with --jobs {jobs}, or memory may run out.")
    return Finding("Memory", size)


# What isolates


def _layers() -> Iterator[Finding]:
    """Yield a finding for each layer of the sandbox."""
    if sys.platform != "linux":
        return
    from grader.sandbox import landlock, seccomp

    version = landlock.version()
    if version:
        yield Finding("Landlock", f"version {version}: files, {_scope(version)}")
    else:
        yield Finding("Landlock", "none", _no_landlock())
    if seccomp.usable():
        yield Finding("seccomp", "filters system calls")
    else:
        kind = platform.machine()
        advice = "Use a 64-bit Linux on x86-64 or aarch64, in a container that allows seccomp."
        yield Finding("seccomp", f"no filter for {kind}", advice)
    yield _user()


def _scope(version: int) -> str:
    return "network and signals" if version >= 6 else "seccomp restricts the rest"


def _no_landlock() -> str:
    active = Path("/sys/kernel/security/lsm")
    if active.exists() and "landlock" not in active.read_text():
        return "Start the kernel with `lsm=landlock,...` (`cat /sys/kernel/security/lsm` shows it)."
    return "Use Linux 5.13 or later; in a container, let its seccomp profile allow Landlock."


def _user() -> Finding:
    if os.geteuid() != 0:
        return Finding("Users", "workers run as your user, which is safe")
    from grader.sandbox import confine

    torch = find_spec("torch")
    readable = [os.__file__, *([torch.origin] if torch and torch.origin else [])]
    if confine.may_become(confine.pick_uid(os.getpid()), readable):
        return Finding("Users", "you are root; each worker runs as a separate user")
    return Finding(
        "Users",
        "you are root, and workers also run as root, because other users can't read this Python",
        "Grade as an ordinary user, or install Python and torch where all users can read them.",
    )


def _isolation() -> tuple[str, str]:
    """Return the level of isolation that works here, and the reason if it is not the sandbox."""
    try:
        call_apart(f"{__name__}:try_sandbox", Isolation.SANDBOX)
        return "sandbox", ""
    except InternalError as error:
        return "process", str(error).partition("\n")[0]


def try_sandbox(prefork_server: socket.socket | None) -> None:
    """Start the sandbox, run its self-test, and stop the sandbox. Call this in a trusted process.

    Args:
        prefork_server: the connection to this process's prefork server, if there is one.

    Raises:
        SandboxError: the sandbox can't be started, or an attack succeeded. The message
            contains the reason.
    """
    from grader.sandbox.sandbox import Sandbox  # imported here, because it loads torch

    with Sandbox(prefork_server=prefork_server):
        pass


def _level(level: str, reason: str) -> Finding:
    if level == "sandbox":
        return Finding("Isolation", "sandbox; it blocked all attacks of its self-test")
    advice = (
        "Grade on Linux, in Docker or in WSL 2. `grader grade --isolation process` works here, but "
        "students' code could then read and change all files that you can."
    )
    return Finding("Isolation", f"process, no sandbox: {reason}", advice)


# Output


def examination_table(examination: Examination) -> Table:
    """Return a table with a row for each finding."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in examination.findings:
        mark = "[red]✗[/]" if finding.advice else "[green]✓[/]"
        table.add_row(mark, finding.name, escape(finding.state))
    return table
