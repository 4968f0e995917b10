"""The settings of a run of the grader."""

from __future__ import annotations

import os
from dataclasses import dataclass

from grader.code.time_limit import TIMEOUT_SECONDS
from grader.result import Isolation


@dataclass(frozen=True)
class Settings:
    """The settings of a run of the grader.

    Attributes:
        seed: the seed of the tests' inputs.
        call_seconds: the time limit of one call of a student's function.
        memory_mb: the memory limit of a student's process, in addition to the memory of torch.
        isolation: the isolation of student code.
    """

    seed: int = 0
    call_seconds: float = TIMEOUT_SECONDS
    memory_mb: int = 1024
    isolation: Isolation = Isolation.SANDBOX


def default_jobs() -> int:
    """Return the default number of submissions to grade at the same time: one for each usable
    core.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
