"""A run loads torch once for all its processes. The command itself does not load torch.

Loading torch takes most of the time of a start, so the test counts how often it is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from tests.grader.intake.uploads import FILE, RIGHT, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# The command. It records its process id, and must not load modules that take long.
RUN = """
import os
import sys
from pathlib import Path
import grader.cli
import grader.cli_instructor
from grader.course import Course
if __name__ == "__main__":
    course = Course(Path(sys.argv.pop(1)))
    grader.cli.own_course = lambda: course
    os.environ["COMMAND"] = str(os.getpid())
    try:
        grader.cli_instructor.app()
    finally:
        assert not {"torch", "numpy", "pytest", "distributed"} & sys.modules.keys()
"""

# Code in the first test that records the running processes, unless a worker runs the test.
NOTE = """
    import json
    import os
    from pathlib import Path

    def has_torch(process):
        try:
            return "libtorch" in Path(f"/proc/{process}/maps").read_text()
        except OSError:
            return None  # the process is protected

    def below(process):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return {int(child): [process, has_torch(child)] for child in children} | {
            id: told for child in children for id, told in below(int(child)).items()
        }

    if "COMMAND" in os.environ:
        command = int(os.environ["COMMAND"])
        tree = {command: [0, has_torch(command)], **below(command)}
        Path(os.environ["NOTE"]).write_text(json.dumps(tree))
"""


@pytest.fixture
def run(tmp_path: Path, small_course: Course) -> Any:
    """Return a function that runs a command on one submission.

    The function returns the tree of processes during the first test.
    """
    file = small_course.problems()[0].test_file
    text = file.read_text()
    title = '    """double returns twice its argument"""\n'
    assert title in text
    file.write_text(text.replace(title, title + NOTE))
    (tmp_path / "run.py").write_text(RUN)
    handed_in = write(tmp_path / "one", {FILE: RIGHT})

    def command(*words: str, folder: str = "--out") -> dict[int, tuple[int, bool | None]]:
        note = tmp_path / "note.json"
        note.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, str(tmp_path / "run.py"), str(small_course.root), *words]
            + [folder, str(tmp_path / "out")],
            env=os.environ | {"NOTE": str(note)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        tree = json.loads(note.read_text()) if note.exists() else {}
        return {int(process): tuple(told) for process, told in tree.items()}

    command.one = str(handed_in)  # type: ignore[attr-defined]
    return command


def processes_that_loaded_torch(tree: dict[int, tuple[int, bool | None]]) -> list[int]:
    """Return the processes that have torch although their parents do not."""
    has = {process: torch for process, (_, torch) in tree.items()}
    return [process for process, (above, torch) in tree.items() if torch and not has.get(above)]


@pytest.mark.slow
def test_grading_loads_torch_once_and_only_if_needed(run: Any) -> None:
    tree = run("grade", run.one)
    assert len(tree) >= 4  # the command, its fork server, the trusted side, a server, a worker
    assert len(processes_that_loaded_torch(tree)) == 1
    assert run("grade", run.one) == {}


@pytest.mark.slow
def test_a_replay_loads_torch_once(run: Any) -> None:
    tree = run("replay", run.one, "test_doubles", folder="--reports")
    assert len(tree) >= 4
    assert len(processes_that_loaded_torch(tree)) == 1
