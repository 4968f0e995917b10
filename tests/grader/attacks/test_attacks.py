"""Submissions that attack the grader get the expected result and leave no traces.

Each file in `files/` is one submission; its docstring states the attack and the expected result.
`calls.py` contains attacks of a single statement. The first digit of an attack's number is its
kind. 0 and 1: exits and forged verdicts; 2: returned values; 3: secrets; 4: state and time; 5:
resources; 6: the machine.
"""

import gc
import json
import os
import re
import signal
import site
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from grader.diagnose.answers import attempt
from grader.errors import Mismatch
from grader.run.encoding import Decoder
from grader.sandbox.failures import WorkerFailure
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import SandboxError
from tests.grader.attacks.calls import SOURCES
from tests.grader.attacks.conftest import RIGHT, start_prefork_servers
from tests.grader.sandbox.asking import Asked
from tests.processes import is_running, parent_of, wait_until, wait_until_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

FILES = Path(__file__).parent / "files"
ROOT = Path(__file__).resolve().parents[3]
QUICK, HANGS = 15, 25
"""The seconds that an attack may take on a busy machine. `HANGS` is for attacks that time out."""

# Maps each attack to the statuses that its three tests may have, and its points (-1: any points).
TABLE: dict[str, tuple[str, float]] = {
    "00_right": ("passed", 4),
    "01_exit_at_import": ("crash", 0),
    "02_exit_in_one_call": ("crash passed", 3),
    "03_system_exit_at_import": ("error", 0),
    "03_system_exit_in_call": ("error", 0),
    "04_exception_group": ("error", 0),
    "04_forged_kind": ("error", 0),
    "04_generator_exit": ("error", 0),
    "04_keyboard_interrupt": ("error", 0),
    "04_own_base_exception": ("error", 0),
    "04_stop_iteration": ("error", 0),
    "05_exit_handler": ("failed", 0),
    "06_abort": ("crash", 0),
    "06_kill_itself": ("error", 0),
    "06_out_of_time": ("crash", 0),
    "06_segfault": ("crash", 0),
    "06_stop_itself": ("timeout", 0),
    "07_kill_the_grader": ("error", 0),
    "08_pytest_exit": ("error", 0),
    "09_recursion": ("error", 0),
    "09_stack_overflow": ("crash memory", 0),
    "10_expected_failure": ("error", 0),
    "10_skip_at_import": ("error", 0),
    "10_skip_in_call": ("error", 0),
    "10_unittest_skip": ("error", 0),
    "11_patched_reports": ("failed", 0),
    "12_patched_comparison": ("failed", 0),
    "13_dead_generator": ("error failed", 0),
    "13_patched_random": ("failed", 0),
    "13_predicted_draws": ("error", 0),
    "14_stopped_clock": ("timeout", 0),
    "15_written_results": ("error", 0),
    "16_forged_output": ("failed", 0),
    "17_every_descriptor": ("bad_output", 0),
    "17_lying_worker": ("failed", 0),
    "17_replaced_channel": ("error crash", 0),
    "18_answer_to_another": ("bad_output", 0),
    "18_two_answers": ("failed bad_output", 0),
    "19_the_parents_memory": ("error", 0),
    "20_class_lies": ("failed", 0),
    "20_equal_to_everything": ("failed", 0),
    "20_module_with_answers": ("failed", 0),
    "20_object_raises": ("failed", 0),
    "21_tensor_subclass": ("failed", 0),
    "22_array_subclass": ("failed", 0),
    "22_float_subclass": ("failed", 0),
    "23_broadcastable_shape": ("failed", 0),
    "23_no_entries": ("failed", 0),
    "23_other_dtype": ("failed", 0),
    "24_infinity": ("failed", 0),
    "24_nan": ("failed", 0),
    "25_zeroed_input": ("failed", 0),
    "25_zeroed_memory": ("failed", 0),
    "26_complex": ("failed", 0),
    "26_expanded": ("bad_output", 0),
    "26_fake": ("error", 0),
    "26_in_a_graph": ("passed", 4),
    "26_quantised": ("failed", 0),
    "26_sparse": ("failed", 0),
    "26_without_data": ("failed", 0),
    "27_other_at_each_look": ("failed", 0),
    "28_colliding_keys": ("failed bad_output", 0),
    "28_endless_generator": ("failed", 0),
    "28_huge_dictionary": ("bad_output", 0),
    "28_huge_tensor": ("failed", 0),
    "28_list_in_itself": ("error", 0),
    "28_nested_list": ("error", 0),
    "28_object_in_itself": ("failed", 0),
    "28_one_tensor_very_often": ("bad_output", 0),
    "28_very_many_objects": ("failed", 0),
    "29_code_in_a_pickle": ("failed", 0),
    "30_class_without_a_name": ("error", 0),
    "30_control_characters": ("error", 0),
    "30_exception_class_lies": ("error", 0),
    "30_fields_without_names": ("failed", 0),
    "30_hostile_class": ("error crash", 0),
    "30_hostile_text": ("error", 0),
    "30_huge_field": ("failed", 0),
    "30_huge_text": ("error", 0),
    "30_line_that_fights_back": ("error", 0),
    "31_read_the_solution": ("error", 0),
    "32_expected_values": ("error", 0),
    "33_import_the_solution": ("error", 0),
    "34_environment": ("error", 0),
    "34_main_module": ("error", 0),
    "35_other_processes": ("error", 0),
    "36_another_submission": ("error", 0),
    "38_tells_its_inputs": ("error", 0),
    "41_tells_tests_apart": ("passed failed", 2),
    "42_kept_state": ("error", 0),
    "43_modified_torch": ("failed error", 0),
    "44_hard_coded": ("passed failed", 2),
    "45_forbidden_and_caught": ("forbidden", 0),
    "45_forbidden_by_another_name": ("forbidden", 0),
    "45_forbidden_in_a_thread": ("error", 0),
    "45_guard_suspended": ("forbidden", 0),
    "45_guard_switched_off": ("forbidden", 0),
    "45_lazy_answer": ("forbidden", 0),
    "45_torch_in_python": ("forbidden", 0),
    "46_loop": ("timeout", 0),
    "46_object_loops": ("failed", 0),
    "47_sleep_at_import": ("timeout", 0),
    "48_busy_in_c": ("timeout", 0),
    "49_ignores_signals": ("timeout", 0),
    "50_memory_at_import": ("memory", 0),
    "50_memory_at_once": ("memory", 0),
    "50_memory_bit_by_bit": ("memory", 0),
    "50_memory_of_the_answer": ("bad_output", 0),
    "50_memory_of_a_mapping": ("memory", 0),
    "50_memory_of_torch": ("memory", 0),
    "51_fork_bomb": ("error", 0),
    "51_thread_bomb": ("error memory crash", 0),
    "52_daemon": ("error", 0),
    "53_flood_of_output": ("passed", 4),
    "54_full_disk": ("error", 0),
    "55_all_descriptors": ("crash error passed", -1),
    "56_limits": ("error", 0),
    "57_all_cores": ("passed", 4),
    "58_priority": ("error", 0),
    "60_network": ("error", 0),
    "61_change_the_course": ("error", 0),
    "61_programs": ("error", 0),
    "61_write_everywhere": ("error", 0),
    "62_terminal": ("error", 0),
    "63_graphics_card": ("error failed", 0),
    "66_odd_name": ("passed", 4),
}

MISSING = re.compile(
    "(NameError|AttributeError|KeyError|TypeError|IndexError|ImportError"
    "|ModuleNotFoundError|Error: problem.py can't import)"
)
"""The beginning of a message about code that uses a missing name or module."""

MISSES = {"33_import_the_solution"}
"""Attacks whose expected message matches `MISSING`."""

HANGING = {name for name, (statuses, _) in TABLE.items() if "timeout" in statuses}
# Folders into which attacks try to write the files in `LEFT`.
PLACES = [
    *map(
        Path, ("/", "/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir(), os.path.expanduser("~"))
    ),
    *map(Path, site.getsitepackages()),
    Path(os.__file__).parent,
    ROOT,
]
SECRET = ("problems", "solutions", "tests", "grader", ".git")
LEFT = ("planted_by_a_submission.pth", "kept_by_a_submission", "results.json", "huge")


def left_behind():
    return {str(place / name) for place in PLACES for name in LEFT if (place / name).exists()}


def test_the_table_is_complete():
    assert sorted(TABLE) == sorted([*SOURCES, *(path.stem for path in FILES.glob("*.py"))])


def test_the_readme_lists_exactly_the_existing_attacks():
    here = Path(__file__).parent
    text = (here / "README.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"`(\d\d_\w+)`( ●)?", text))
    assert set(named) == set(TABLE) - {"00_right"}
    assert {name for name, mark in named.items() if mark} == set(CONTROLS)
    for file, test in re.findall(r"`([\w./]*test_\w+\.py)(?:::(\w+))?`", text):
        assert f"def {test}" in (here / file).read_text(encoding="utf-8")


# The attacks that a quick run includes.
QUICK_ONES = (
    "00_right",
    "02_exit_in_one_call",
    "06_segfault",
    "12_patched_comparison",
    "17_lying_worker",
    "35_other_processes",
    "45_forbidden_and_caught",
    "60_network",
)


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK_ONES else pytest.param(n, marks=pytest.mark.slow) for n in TABLE],
)
def test_attack(request, target, name):
    grade = request.getfixturevalue("impatient" if name in HANGING else "grade")
    start_prefork_servers(grade, target.source(name).encode())
    statuses, points = TABLE[name]
    processes, files, elsewhere = grade.processes(), target.tree(), left_behind()
    course = grade.tree()
    started = time.monotonic()
    result = grade(target.source(name).encode())
    seconds = time.monotonic() - started

    assert grade.processes() == processes, "a process was left or killed"
    assert target.tree() == files
    assert grade.tree() == course
    assert left_behind() <= elsewhere
    assert seconds < (HANGS if name in HANGING else QUICK)
    right = grade(target.source("00_right").encode())
    assert (right.points, right.max) == (4, 4), "the next file, a correct one, failed"

    found = {test.status.value for test in result.tests}
    assert len(result.tests) == 3
    assert found <= set(statuses.split()), result.tests[0].message
    assert points in (result.points, -1)
    for test in result.tests:
        assert name in MISSES or not MISSING.match(test.message), "the attack did not start"
        assert bool(test.message) == (test.status != "passed")
        check_message(test.message, target.canary)


def check_message(message, canary):
    """Check that a message is printable and contains no secret."""
    assert len(message) < 5000
    assert all(c.isprintable() or c in "\n\t" for c in message)
    assert canary not in message
    assert not [name for name in SECRET if str(ROOT / name) in message]


# Attacks on the trusted process that `test_attack` can't check


def test_a_huge_answer_to_a_probe_is_not_processed():
    """A tensor of 256 MB is not processed as the answer to a small question."""
    assert len(attempt(lambda: torch.ones(1 << 20, dtype=torch.uint8)).write()) < 100_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["23_other_dtype", "28_one_tensor_very_often"])
def test_answers_of_a_failed_test_are_freed(grade, target, name):
    """Answers can take 256 MB. They are freed at once, as garbage collection may be too late."""
    gc.collect()
    gc.disable()
    try:
        assert grade(target.source(name).encode()).points == 0
        found = [type(thing) for thing in gc.get_objects()]
    finally:
        gc.enable()
    assert not {Mismatch, WorkerFailure} & {*found}


def test_hidden_forbidden_calls_at_import_are_reported(grade):
    hides = b"try: open('/etc/shadow')\nexcept OSError: pass\ndef double(x): return x + x\n"
    result = grade(hides)
    assert result.points == 4
    assert result.notes == ["01: While it was loaded, problem.py tried to read '/etc/shadow'."]


@pytest.mark.slow
def test_a_broken_sandbox_gives_no_student_zero_points(grade):
    """The sandbox restarts, and the file that it was testing is not judged."""
    before = grade.processes()
    sandbox, grade_there = grade.another()

    def kill_the_prefork_server():
        (parent,) = {p for p in grade.processes() - before if parent_of(p) == os.getpid()}
        os.kill(parent, signal.SIGKILL)
        wait_until(lambda: grade.processes() == before, 120)

    with sandbox:
        kill_the_prefork_server()
        assert grade_there(RIGHT).points == 4
        assert sandbox.level == "sandbox"
        with Asked(sandbox, "", "any(iter(int, 1))") as asked:  # which never ends
            kill_the_prefork_server()
            with pytest.raises(SandboxError):
                asked.next()
        assert grade_there(RIGHT).points == 4
        assert sandbox.level == "sandbox"
        with Asked(sandbox, "import sys", "problem.sys.orig_argv[1:3]") as asked:
            assert asked.next() == ["-I", "-W"]  # -I: Python ignores the environment
    assert grade.processes() == before


GRADE = """
import sys
from pathlib import Path
from grader.grade.pool import grade_all
from grader.course import Course
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission

endless = StudentFile(b"def double(x):\\n    while True: pass\\n")
submissions = [Submission("endless", {"01-doubling": endless})]
grade_all(submissions, Course(Path(sys.argv[1])), Settings(call_seconds=100), 1, print)
"""


@pytest.mark.slow
def test_no_process_outlives_a_killed_batch(grade):
    """The kernel ends the jobs of the batch, and with them prefork servers and workers."""
    before = grade.processes()
    batch = subprocess.Popen([sys.executable, "-c", GRADE, str(grade.course.root)])
    try:
        wait_until(
            lambda: any(p for p in grade.processes() - before if is_busy_worker(p, batch.pid)), 120
        )
    finally:
        batch.kill()
        batch.wait()
    wait_until(lambda: grade.processes() <= before, 120)


def is_busy_worker(process, batch):
    """Return whether a process is a worker of the batch that has run for half a second."""
    with suppress(OSError):
        above = [parent_of(process)]
        while above[-1] > 1:  # all ancestors: prefork servers, the job, the batch
            above.append(parent_of(above[-1]))
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return batch in above[2:] and int(fields[11]) > 50
    return False


@pytest.fixture
def recorders(monkeypatch):
    """Record the connection to each worker, and check that only one worker runs at a time."""
    found = []
    record = Sandbox.record

    def noted(*given):
        assert not [each for each in found if is_running(each._process.pid)]
        found.append(record(*given))
        return found[-1]

    monkeypatch.setattr(Sandbox, "record", noted)
    return found


@pytest.mark.slow
def test_an_unloadable_file_is_loaded_once(impatient, target, recorders):
    """Code that never ends at import takes one time limit, not one for each test."""
    result = impatient(target.source("47_sleep_at_import").encode())
    assert [test.status.value for test in result.tests] == ["timeout"] * 3
    assert len(recorders) == 1


def test_a_submission_has_one_process_at_a_time(grade, target, recorders):
    """The memory limit of a submission applies to each process, so only one runs at a time."""
    grade(target.source("02_exit_in_one_call").encode())
    assert len(recorders) == 3  # the first, one after the crash, one for hidden tests


@pytest.mark.slow
def test_after_two_endless_tests_the_others_do_not_run(impatient, target):
    result = impatient(target.source("46_loop").encode())
    assert ["Not run" in test.message for test in result.tests] == [False, False, True]


# Controls: without a sandbox, the attacks succeed. So the tests above show that the sandbox works.

CONTROLS = {
    "01_exit_at_import": "allclose",
    "02_exit_in_one_call": "allclose",
    "05_exit_handler": "allclose",
    "06_kill_itself": "allclose",
    "07_kill_the_grader": "allclose",
    "10_skip_in_call": "allclose",
    "10_unittest_skip": "allclose",
    "11_patched_reports": "allclose",
    "12_patched_comparison": "allclose",
    "13_patched_random": "allclose",
    "15_written_results": "allclose",
    "16_forged_output": "allclose",
    "17_every_descriptor": "pipe",
    "20_equal_to_everything": "equal",
    "21_tensor_subclass": "allclose",
    "31_read_the_solution": "allclose",
    "32_expected_values": "allclose",
    "33_import_the_solution": "allclose",
    "34_environment": "allclose",
    "36_another_submission": "allclose",
    "50_memory_bit_by_bit": "allclose",
    "52_daemon": "allclose",
    "60_network": "allclose",
    "61_write_everywhere": "allclose",
}


@pytest.fixture(scope="module")
def controls(tmp_path_factory, new_target):
    """Return the outcome and the targets of each attack in `CONTROLS`, run without a sandbox."""
    root = tmp_path_factory.mktemp("controls")
    targets = {name: new_target(root / "targets" / name) for name in CONTROLS}
    for name, kind in CONTROLS.items():
        run = root / "runs" / name
        run.mkdir(parents=True)
        (run / "problem.py").write_text(targets[name].source(name))
        (run / "kind.txt").write_text(kind)
    canary = targets["34_environment"].canary
    own = {
        "COURSE_CANARY": canary,
        "OMP_NUM_THREADS": "1",
        "HOME": str(root),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    script = str(Path(__file__).parent / "control.py")
    done = subprocess.run(
        [sys.executable, script, str(root / "runs")],
        env={**os.environ, **own},
        capture_output=True,
        timeout=300,
        check=True,
    )
    yield {
        name: found | {"target": targets[name]} for name, found in json.loads(done.stdout).items()
    }
    with suppress(OSError, ValueError):  # a test may already have killed the process
        os.kill(int((targets["52_daemon"].folder / "daemon.txt").read_text()), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(set(CONTROLS) - {"06_kill_itself", "16_forged_output", "34_environment"})
)
def test_without_a_sandbox_cheating_attacks_pass(controls, name):
    """A typical grader without a sandbox exits with status 0, or reads a forged result."""
    found = controls[name]
    assert found["status"] == 0, found["printed"]
    if CONTROLS[name] == "pipe":
        assert found["result"].startswith('{"status": "passed"}')


@pytest.mark.slow
def test_without_a_sandbox_harmful_attacks_succeed(controls, listener: socket.socket):
    """The attacks write files, kill a process, leave a process behind, and open a connection."""
    folders = {name: found["target"].folder for name, found in controls.items()}
    assert (folders["61_write_everywhere"] / "planted_by_a_submission.pth").exists()
    assert (folders["15_written_results"] / "results.json").exists()
    assert controls["06_kill_itself"]["status"] == -signal.SIGKILL
    ended, status = os.waitpid(controls["07_kill_the_grader"]["target"].victim, os.WNOHANG)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL if ended else False
    canary = controls["34_environment"]["target"].canary
    assert canary in controls["34_environment"]["printed"]
    assert "3 passed in" in controls["16_forged_output"]["printed"]
    connection, _ = listener.accept()
    with connection:
        assert connection.recv(100) == b"hidden inputs"
    daemon = int((folders["52_daemon"] / "daemon.txt").read_text())
    os.kill(daemon, signal.SIGKILL)  # raises if the process has already ended
    # Otherwise the next test could assume that its own attack has ended this process.
    wait_until_gone([daemon], HANGS)


def test_the_forged_record_is_well_formed(target):
    """The grader can read the forged record of `18_two_answers`, and refuses its content."""
    scope = {}
    exec(compile(target.source("18_two_answers"), "18_two_answers.py", "exec"), scope)
    frame = scope["record"]("test_doubles[1]")
    assert int.from_bytes(frame[:4], "little") == len(frame) - 4
    assert Decoder(frame[4:]).content == ["test_doubles[1]", [], "passed", ""]
