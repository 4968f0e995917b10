"""What an answer may make this side build, and what happens when it is too much."""

import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from grader.boundary.failures import WorkerFailure
from grader.boundary.frames import ProtocolError
from grader.boundary.protocol.codec import Received, ValueReader
from grader.boundary.protocol.wire import TensorValue
from grader.boundary.recorder import MAX_BYTES, SubmissionBudget
from grader.code.forbidden import Guard
from grader.grade.submission import Opened
from grader.intake.handed_in import StudentFile, Submission
from grader.result import Status
from grader.run.verdict import judge
from tests.grader.boundary.conftest import LIES
from tests.processes import lives

# The worker says that one tensor of 16 MB is very many buffers, views, modules or entries.
ONE_TENSOR = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(4, 1 << 20))
    def forward(self, x): return x
def make(): return M()
def one(): return {"a": torch.ones(4, 1 << 20)}
"""
OFTEN = {
    "buffers": (
        "make",
        "m = told.values[0][2]\n"
        "    m['buffers'] = [[f'b{i}', m['buffers'][0][1], True] for i in range(150)]",
    ),
    "views": (
        "make",
        "m = told.values[0][2]\n"
        "    turned = [['t', 0, o] for o in ([0, 1], [1, 0])] * 75\n"
        "    m['buffers'] = [[f'b{i}', turned[i], True] for i in range(150)]",
    ),
    "parameters": (
        "make",
        "m = told.values[0][2]\n"
        "    m['parameters'] = [[f'p{i}', m['buffers'][0][1], False] for i in range(150)]",
    ),
    "modules": (
        "make",
        "m = told.values[0][2]\n"
        "    m['children'] = [[f'm{i}', dict(m, children=[])] for i in range(150)]",
    ),
    "several modules": (
        "make",
        "v = told.values[0]\n    told.values[0] = ['l', [['o', i, v[2]] for i in range(150)]]",
    ),
    "entries": ("one", "told.values[0] = ['l', [told.values[0]] * 150]"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OFTEN)
def test_a_tensor_that_is_named_very_often_is_bad_output(opened, name):
    function, change = OFTEN[name]
    problem = opened(f"{LIES}{ONE_TENSOR}\ndef change(told):\n    {change}\nlie(change)\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(WorkerFailure) as caught:
        getattr(problem, function)()
    assert caught.value.status is Status.BAD_OUTPUT
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 1 << 20, "kilobytes"


def test_a_mask_that_layers_share_is_no_lie(opened):
    problem = opened(
        """
        import torch
        from torch import nn
        class Layer(nn.Module):
            def __init__(self, mask):
                super().__init__()
                self.register_buffer("mask", mask)
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                mask = torch.ones(1024, 1024)
                self.layers = nn.ModuleList(Layer(mask) for _ in range(12))
            def forward(self, x): return x * self.layers[3].mask[0, 0]
        """
    )
    model = problem.Model()
    assert model(torch.ones(1)) == 1
    assert len(list(model.buffers())) in (1, 12)


def test_what_all_answers_bring_is_counted():
    budget = SubmissionBudget(1, 1)
    budget.build(MAX_BYTES)
    with pytest.raises(ProtocolError):
        budget.build(1)


def test_naming_a_tensor_counts_each_time():
    reader = ValueReader(Received([torch.zeros(1 << 24)]))
    for _ in range(8):
        reader.read(TensorValue(0))
    with pytest.raises(ProtocolError):
        reader.read(TensorValue(0))


def test_memory_that_only_the_trusted_side_lacks_is_bad_output():
    """The student's own lack of memory is told by the worker, and is another status."""
    own = RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
    told = MemoryError()
    told.operands = {}  # as the exceptions have that a worker told
    assert judge(own, Guard(()), remote=True).status is Status.BAD_OUTPUT
    assert judge(told, Guard(()), remote=True).status is Status.MEMORY
    assert judge(own, Guard(())).status is Status.MEMORY


GRADE = """
import sys
from pathlib import Path
from grader.course import Course
from grader.grade.job import grader_for, limit_memory
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission

RIGHT = b"def double(x): return x + x"
LARGE = b"import torch\\ndef double(x): return [torch.ones(1 << 22) for _ in range(15)]"

with grader_for(Course(Path(sys.argv[1])), Settings()) as grader:
    limit_memory(100 << 20)
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


def test_a_submission_has_one_process_at_a_time(sandbox):
    """What a process may have of memory is what a submission may have."""
    file = StudentFile(b"import os\ndef pid(): return os.getpid()")
    files = Opened(Submission("ada", {"01": file, "02": file}), sandbox)
    one, two = SimpleNamespace(id="01"), SimpleNamespace(id="02")
    try:
        before = files(one, ()).pid()
        assert files(one, ()).pid() == before
        after = files(two, ()).pid()
        assert not lives(before)
        assert lives(files(one, ()).pid())
        assert not lives(after)
    finally:
        files.close()
