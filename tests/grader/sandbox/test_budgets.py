"""The memory that a worker's message takes in the trusted process is limited."""

import subprocess
import sys
from pathlib import Path

import pytest

from grader.course import own_course
from tests.warm import WarmPython

GRADE = """
import sys
from pathlib import Path
from grader.course import Course
from grader.grade.job import grader_for, limit_memory
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission

RIGHT = b"def double(x): return x + x"
LARGE = b"import torch\\ndef double(x): return torch.ones(7 << 20)"

with grader_for(Course(Path(sys.argv[1])), Settings()) as grader:
    limit_memory(20 << 20)
    for source in (RIGHT, LARGE, RIGHT):
        result = grader.grade(Submission("student", {"01-doubling": StudentFile(source)}))
        print(result.points, {test.status.value for test in result.problems[0].tests})
"""

JUDGE = """
import struct
from types import SimpleNamespace
import torch
from grader.grade.job import limit_memory
from grader.run.checks import Mode, check_same, running
from grader.run.encoding import MOST_BYTES, MOST_TEXT, Encoder
from grader.run.judging import Expectation, RunDetails, verdict

def memory(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(name))

def largest(text):
    return struct.pack("<II", len(text), MOST_BYTES) + text + bytes(MOST_BYTES)

def compared(size):
    encoder, values = Encoder(), torch.arange(2.0 * size, dtype=torch.float64).view(2, *shape(size))
    record = [["call", encoder.encode(tuple(values))]]
    return encoder.message(["test", record, "passed", "", None, {}])

def shape(size):
    return (2,) * (size.bit_length() - 1)

lists = b"[]," * (MOST_TEXT // 3 - 100)
messages = [
    largest(b'["test",[' + lists + b'[]],"passed","",null,{}]'),
    largest(b'["test",[["call",["list",' + lists + b'[]]]],"passed","",null,{}]'),
    largest(b'["test",[["call",1]],"failed","",[' + lists + b'[]],{}]'),
    compared(1 << 18),
    compared(1 << 20),
]
test = SimpleNamespace(id="test", inspection_only=False)
with running(Mode("trusted")) as mode:
    check_same(torch.zeros(1), torch.zeros(1), "call")
expected = Expectation(tuple(mode.record), b"")
before = memory("VmRSS")
for message in messages:
    assert verdict(test, expected, message).status != "passed"
    RunDetails.read(message)
print(memory("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_the_largest_messages_take_little_memory_to_judge(warm_python: WarmPython) -> None:
    done = warm_python.run("-c", JUDGE, cwd=own_course().root)
    assert float(done.stdout) < 150, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit requires Linux")
def test_the_trusted_process_survives_messages_that_exceed_its_memory(new_course, tmp_path: Path):
    course = new_course(tmp_path / "course")
    command = [sys.executable, "-c", GRADE, str(course.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "4.0 {'passed'}\n0.0 {'bad_output'}\n4.0 {'passed'}\n", done.stderr
