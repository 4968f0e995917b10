"""At the isolation level `process`, workers run the tests without a sandbox."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.course import Course
from grader.result import Isolation, ProblemResult, Status
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import TemplateProcess
from tests.lent import lent_sandbox
from tests.source_grader import SourceGrader

PASSED, FAILED, CRASH = Status.PASSED, Status.FAILED, Status.CRASH


@pytest.fixture(scope="module")
def unconfined() -> Iterator[Sandbox]:
    with Sandbox(Isolation.PROCESS, call_seconds=60, capture=True) as sandbox:
        yield sandbox


@pytest.mark.slow
def test_a_crash_affects_only_its_test(
    tmp_path: Path, new_course: Callable[[Path], Course], unconfined: Sandbox
) -> None:
    grade = SourceGrader(new_course(tmp_path / "course"), unconfined)
    ends = "import os\ndef double(x):\n    if len(x) == 2: os._exit(0)\n    return x + x\n"
    assert [test.status for test in grade(ends).tests] == [PASSED, CRASH, PASSED]
    calls = "import torch\ndef double(x): return x + x + 0 * torch.softmax(x, -1)\n"
    assert [test.status for test in grade(calls).tests] == [Status.FORBIDDEN] * 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
@pytest.mark.parametrize("right", [True, False])
def test_each_test_ends_as_in_the_sandbox(
    course: Course, origin: TemplateProcess, unconfined: Sandbox, right: bool
) -> None:
    source = course.solution(course.problems()[0]).read_text(encoding="utf-8")
    source = source if right else source.replace("x - x.amax(dim, keepdim=True)", "x")
    with lent_sandbox(origin, call_seconds=60) as sandbox:
        confined = SourceGrader(course, sandbox)(source)
    result = SourceGrader(course, unconfined)(source)
    assert endings(result) == endings(confined)
    assert result.mistakes == confined.mistakes
    assert bool(confined.mistakes) is not right
    statuses = {test.status for test in confined.tests}
    assert statuses == ({PASSED} if right else {PASSED, FAILED})


def endings(result: ProblemResult) -> list[tuple[str, Status, str]]:
    return [(test.id, test.status, test.message) for test in result.tests]
