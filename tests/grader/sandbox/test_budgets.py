"""Limits on the trusted process's memory for messages of workers."""

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="there is no such limit elsewhere")
def test_the_trusted_process_survives_what_it_has_no_memory_for(new_course, tmp_path: Path):
    course = new_course(tmp_path / "course")
    command = [sys.executable, "-c", GRADE, str(course.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "4.0 {'passed'}\n0.0 {'bad_output'}\n4.0 {'passed'}\n", done.stderr
