"""A class is graded into a folder: nothing is done twice, and nothing is left half done."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.course import Course
from grader.errors import InUse
from grader.files import locked
from grader.grading import class_run, pool
from grader.grading.class_run import ClassRun, grade_class
from grader.grading.provenance import basis, grounds
from grader.grading.settings import Settings
from grader.intake.submissions import Submission, find_submissions
from grader.result import Policy, ProblemResult, Status, SubmissionResult, TestResult

RIGHT = "def double(x): return x + x"
WRONG = "def double(x): return 3 * x"


class School:
    """A class, its course and its folder of reports; grading runs in this process."""

    def __init__(self, root: Path, course: Course) -> None:
        self.course = course
        self.folder, self.out = root / "class", root / "out"
        self.graded: list[tuple[str, list[str]]] = []
        for name, source in {"ada": RIGHT, "bob": WRONG}.items():
            self.hand_in(name, source)

    def hand_in(self, name: str, source: str) -> None:
        file = self.folder / name / "01-doubling" / "problem.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)

    def grade(self, folder: Path | None = None, only: str = "", **options: object) -> ClassRun:
        self.graded.clear()
        settings = Settings(**options.pop("settings", {}))  # type: ignore[arg-type]
        chosen = self.course.select([only])[0] if only else None
        submissions = find_submissions([folder or self.folder], self.course, chosen)
        options = {"jobs": 1, "policy": Policy.TITLES, **options}
        return grade_class(submissions, self.course, settings, self.out, **options)  # type: ignore[arg-type]

    def gradebook(self) -> dict[str, str]:
        text = (self.out / "gradebook.csv").read_text()
        return {row["submission"]: row["total"] for row in csv.DictReader(text.splitlines())}

    def names(self) -> list[str]:
        return [name for name, _ in self.graded]


@pytest.fixture
def school(tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch) -> School:
    """A class of two. Marks are made up from the sources, which takes no time."""
    made = School(tmp_path, small_course)

    def grade_all(submissions, course, settings, jobs, on_result):  # type: ignore[no-untyped-def]
        for submission in submissions:
            made.graded.append((submission.name, list(submission.files)))
            on_result(made_up(submission, course, settings))

    monkeypatch.setattr(class_run, "grade_all", grade_all)
    return made


def made_up(submission, course, settings):  # type: ignore[no-untyped-def]
    """Return a result: 4 points for each right source."""
    result = SubmissionResult(submission.name, 0, "sandbox", "", [])
    for id, file in submission.files.items():
        status = Status.PASSED if file.source == RIGHT.encode() else Status.FAILED
        if file.source == b"fault":
            return pool.internal_result(submission.name, "a fault")
        test = TestResult("test_doubles", "it doubles", False, 4, status)
        found = ProblemResult(id, file.sha256, [test])
        found.basis = basis(file, grounds(course, settings)[id])
        result.problems.append(found)
    return result


# What is kept


def test_what_holds_is_kept(school: School) -> None:
    assert school.grade().graded == 2
    before = (school.out / "gradebook.csv").read_bytes()
    again = school.grade()
    assert (again.graded, school.names(), again.changes) == (0, [], [])
    assert (school.out / "gradebook.csv").read_bytes() == before


def test_only_who_hands_in_again_is_graded_again(school: School) -> None:
    school.grade()
    school.hand_in("bob", RIGHT)
    run = school.grade()
    assert school.names() == ["bob"]
    assert [str(change) for change in run.changes] == [
        "bob: 01-doubling 0 -> 4 (submission changed)"
    ]
    assert school.gradebook() == {"ada": "4", "bob": "4"}


def test_only_the_problem_that_changed_is_graded_again(school: School) -> None:
    problems = school.course.root / "problems"
    shutil.copytree(problems / "01-doubling", problems / "02-doubling")
    plan = class_run.plan(
        find_submissions([school.folder], school.course)[0],
        None,
        grounds(school.course, Settings()),
        fresh=False,
    )
    assert list(plan.because) == ["01-doubling", "02-doubling"]
    shutil.rmtree(problems / "02-doubling")
    school.grade()
    shutil.copytree(problems / "01-doubling", problems / "02-doubling")
    earlier = class_run.load_results(school.out / "results")["ada"]
    (ada, _) = find_submissions([school.folder], school.course)
    plan = class_run.plan(ada, earlier, grounds(school.course, Settings()), fresh=False)
    assert (list(plan.kept), list(plan.because)) == (["01-doubling"], ["02-doubling"])


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("problems/01-doubling/test_doubling.py", "tests changed"),
        ("problems/01-doubling/fingerprints.json", "tests changed"),
        ("solutions/01-doubling/problem.py", "tests changed"),
        ("problems/01-doubling/README.md", ""),
    ],
)
def test_changed_tests_are_run_again(school: School, file: str, why: str) -> None:
    school.grade()
    with (school.course.root / file).open("a") as changed:
        changed.write("\n")
    school.grade()
    assert school.names() == (["ada", "bob"] if why else [])
    data = json.loads((school.out / "results/ada.json").read_text())
    assert data["problems"][0]["because"] == (why or "new")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"seed": 1}, "seed changed"),
        ({"call_seconds": 3.0}, "limits changed"),
        ({"isolation": "process"}, "isolation changed"),
        ({"isolation": "sandbox"}, ""),
    ],
)
def test_other_settings_count(school: School, settings: dict[str, object], why: str) -> None:
    school.grade()
    school.grade(settings=settings)
    assert school.names() == (["ada", "bob"] if why else [])


def test_another_grader_counts(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    school.grade()
    monkeypatch.setattr("grader.grading.submission.code_sha256", lambda: "another")
    school.hand_in("bob", "def double(x): return 4 * x")
    school.grade()
    data = json.loads((school.out / "results/bob.json").read_text())
    assert data["problems"][0]["because"] == "submission changed, grader changed"


def test_fresh_ignores_what_is_there(school: School) -> None:
    school.grade()
    assert school.grade(fresh=True).graded == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 1}', '{"schema": 99}', "\x00", "[" * 9999]
)
def test_a_broken_result_is_no_result(school: School, text: str) -> None:
    school.grade()
    (school.out / "results/ada.json").write_text(text)
    school.grade()
    assert school.names() == ["ada"]
    assert school.gradebook() == {"ada": "4", "bob": "0"}


def test_the_graders_own_fault_is_not_kept(school: School) -> None:
    school.hand_in("bob", "fault")
    school.grade()
    assert school.gradebook() == {"ada": "4", "bob": ""}
    assert not (school.out / "gradescope/bob.json").exists()
    school.grade()
    assert school.names() == ["bob"]


def test_who_left_the_class_is_left_out_and_named(school: School) -> None:
    school.grade()
    shutil.rmtree(school.folder / "bob")
    run = school.grade()
    assert run.left_out == ["bob"]
    assert school.gradebook() == {"ada": "4"}
    assert (school.out / "results/bob.json").is_file()


def test_another_policy_renews_what_students_see(school: School) -> None:
    school.grade()
    path = school.out / "feedback/ada.md"
    path.write_text("old")
    school.grade()
    assert path.read_text() == "old"
    school.grade(policy=Policy.FULL)
    assert path.read_text() != "old"


# One problem at a time

OTHER = "02-doubling"


@pytest.fixture
def term(school: School) -> School:
    """A class in a course of two problems, whose second was handed in by itself."""
    problems = school.course.root / "problems"
    shutil.copytree(problems / "01-doubling", problems / OTHER)
    for name, source in {"ada": WRONG, "bob": RIGHT}.items():
        write(school.folder.with_name("second") / name / "problem.py", source)
    return school


def write(path: Path, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)


def grade_second(term: School, **options: object) -> ClassRun:
    return term.grade(folder=term.folder.with_name("second"), only="02", **options)


def rows(term: School) -> dict[str, tuple[str, ...]]:
    """Return of each row both problems, the total and the maximum."""
    text = (term.out / "gradebook.csv").read_text()
    columns = ("01-doubling", OTHER, "total", "max")
    return {
        row["submission"]: tuple(row[column] for column in columns)
        for row in csv.DictReader(text.splitlines())
    }


def test_only_the_given_problem_is_entered(term: School) -> None:
    """The gradebook has its columns all the same; what was not handed in is no zero."""
    run = grade_second(term)
    assert term.graded == [("ada", [OTHER]), ("bob", [OTHER])]
    assert rows(term) == {"ada": ("", "0", "0", "4"), "bob": ("", "4", "4", "4")}
    assert run.problems == [OTHER]
    assert "01-doubling" not in (term.out / "feedback/ada.md").read_text()
    assert "01-doubling" not in (term.out / "index.html").read_text()
    assert "01-doubling" not in (term.out / "gradescope/ada.json").read_text()
    assert grade_second(term).graded == 0


def test_the_other_problems_marks_are_kept(term: School) -> None:
    term.grade(only="01")
    both = {"ada": ("4", "0", "4", "8"), "bob": ("0", "4", "4", "8")}
    run = grade_second(term)
    assert term.graded == [("ada", [OTHER]), ("bob", [OTHER])]
    assert rows(term) == both
    assert (run.changes, run.left_out, run.unchanged) == ([], [], [])
    term.hand_in("bob", RIGHT)
    assert [str(change) for change in term.grade(only="01").changes] == [
        "bob: 01-doubling 0 -> 4 (submission changed)"
    ]
    assert term.graded == [("bob", ["01-doubling"])]
    assert rows(term) == both | {"bob": ("4", "4", "8", "8")}
    assert grade_second(term, fresh=True).graded == 2
    assert term.graded == [("ada", [OTHER]), ("bob", [OTHER])]
    assert rows(term) == both | {"bob": ("4", "4", "8", "8")}


def test_who_did_not_hand_in_this_problem_keeps_the_row(term: School) -> None:
    term.grade(only="01")
    shutil.rmtree(term.folder.with_name("second") / "bob")
    run = grade_second(term)
    assert (run.left_out, run.unchanged) == ([], ["bob"])
    assert rows(term) == {"ada": ("4", "0", "4", "8"), "bob": ("0", "", "0", "4")}
    path = term.out / "feedback/bob.md"
    path.write_text("old")
    grade_second(term, policy=Policy.FULL)
    assert path.read_text() != "old"


def test_the_graders_own_fault_spares_the_other_problems(term: School) -> None:
    term.grade(only="01")
    write(term.folder.with_name("second") / "bob" / "problem.py", "fault")
    grade_second(term)
    assert rows(term)["bob"] == ("", "", "", "")
    write(term.folder.with_name("second") / "bob" / "problem.py", RIGHT)
    grade_second(term)
    assert term.graded == [("bob", [OTHER])]
    assert rows(term)["bob"] == ("0", "4", "4", "8")


def test_marks_that_rest_on_something_else_are_told(term: School) -> None:
    term.grade(only="01")
    assert grade_second(term).outdated == {}
    with (term.course.root / "problems/01-doubling/test_doubling.py").open("a") as tests:
        tests.write("\n")
    run = grade_second(term, settings={"seed": 1, "isolation": "process"})
    assert run.outdated == {"01-doubling": ["isolation", "seed", "tests"]}
    assert rows(term)["ada"] == ("4", "0", "4", "8")
    assert term.grade(only="01").outdated == {OTHER: ["isolation", "seed"]}
    data = json.loads((term.out / "results/ada.json").read_text())
    assert data["isolation"] == "process"


def test_a_whole_class_after_one_problem(term: School) -> None:
    """What holds of the one problem is kept; who is not in the class is left out again."""
    for name, source in {"ada": WRONG, "bob": RIGHT, "eve": RIGHT}.items():
        write(term.folder / name / OTHER / "problem.py", source)
    grade_second(term)
    shutil.rmtree(term.folder / "bob")
    run = term.grade()
    assert term.graded == [("ada", ["01-doubling"]), ("eve", ["01-doubling", OTHER])]
    assert (run.left_out, run.unchanged) == (["bob"], [])
    assert list(rows(term)) == ["ada", "eve"]


# What is stopped


def test_a_run_goes_on_where_it_was_stopped(school: School) -> None:
    def stop(result: SubmissionResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        school.grade(on_result=stop)
    assert school.names() == ["ada"]
    assert not (school.out / "gradebook.csv").exists()
    school.grade()
    assert school.names() == ["bob"]
    assert school.gradebook() == {"ada": "4", "bob": "0"}


def test_a_full_disk_leaves_the_old_reports(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.grade()
    files = {path: path.read_bytes() for path in school.out.rglob("*.*") if path.is_file()}
    school.hand_in("bob", RIGHT)

    def full(self: Path, *args: object, **kwargs: object) -> None:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            school.grade()
    assert files == {path: path.read_bytes() for path in school.out.rglob("*.*") if path.is_file()}


def test_half_written_files_are_swept(school: School) -> None:
    school.grade()
    (school.out / "results/.ada.json.123.part").write_text("{")
    school.grade()
    assert not list(school.out.rglob("*.part"))


def test_two_runs_at_once_are_one_too_many(school: School) -> None:
    with locked(school.out), pytest.raises(InUse, match="Another run"):
        school.grade()
    school.grade()


# It listens to Ctrl-C, also when whoever runs these tests doesn't, as a job in the background.
RUN = """
import signal
import sys
from pathlib import Path
import grader.cli
from grader.course import Course
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    course = Course(Path(sys.argv.pop(1)))
    grader.cli.own_course = lambda: course
    grader.cli.app()
"""


def descendants(process: int) -> set[int]:
    """Return the processes below one, by what /proc says."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(rest[1]) if rest[0] != "Z" else 0
    found = {process}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds: float = 90) -> bool:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_stopped_leaves_results_and_no_process(
    tmp_path: Path, small_course: Course, how: signal.Signals
) -> None:
    for name, source in {"ada": RIGHT, "zoe": "def double(x):\n    while True: pass"}.items():
        file = tmp_path / "class" / name / "01-doubling" / "problem.py"
        file.parent.mkdir(parents=True)
        file.write_text(source)
    (tmp_path / "run.py").write_text(RUN)
    out = tmp_path / "out"
    command = [sys.executable, str(tmp_path / "run.py"), str(small_course.root), "grade"]
    command += [str(tmp_path / "class"), "--out", str(out), "--jobs", "1", "--timeout", "60"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert until((out / "results/ada.json").is_file)
        started = descendants(process.pid)
        os.killpg(process.pid, how)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert until(lambda: not any(map(alive, started)), 30)
    assert list((out / "results").glob("*.json")) == [out / "results/ada.json"]
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert errors.strip().splitlines()[-1].startswith("Stopped.")
        assert "Traceback" not in output + errors


# A timeout under load


class FakeProcess:
    exitcode = 0

    def is_alive(self) -> bool:
        return True

    def join(self, timeout: float) -> None: ...

    def kill(self) -> None: ...


class FakeConnection:
    """Answers each task by the script; real ones are pipes."""

    def __init__(self, answer) -> None:  # type: ignore[no-untyped-def]
        self.answer, self.tasks = answer, []

    def send(self, task: object) -> None:
        self.tasks.append(task)

    def recv(self) -> SubmissionResult:
        return self.answer(self.tasks.pop(0))

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("jobs", "alone", "points", "repeated"),
    [
        (2, Status.PASSED, 4, True),
        (2, Status.TIMEOUT, 0, True),
        (1, Status.PASSED, 0, False),
    ],
)
def test_a_timeout_under_load_is_tried_again_alone(
    small_course: Course,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jobs: int,
    alone: Status,
    points: float,
    repeated: bool,
) -> None:
    asked: list[tuple[str, list[str]]] = []

    def answer(submission: Submission) -> SubmissionResult:
        name = submission.name
        again = name in {asked_name for asked_name, _ in asked}
        asked.append((name, list(submission.files)))
        slow = alone if again else Status.TIMEOUT
        status = slow if name == "bob" else Status.PASSED
        test = TestResult("test_doubles", "it doubles", False, 4, status)
        return SubmissionResult(
            name, 0, "sandbox", "", [ProblemResult("01-doubling", tests=[test])]
        )

    def start(course: Course, settings: Settings, core: int | None) -> pool._Job:
        return pool._Job(FakeProcess(), FakeConnection(answer), core)  # type: ignore[arg-type]

    monkeypatch.setattr(pool, "_start", start)
    monkeypatch.setattr(pool, "wait", lambda connections: connections)
    for name in ("ada", "bob", "eve"):
        (tmp_path / "class" / name / "01-doubling").mkdir(parents=True)
    results: dict[str, SubmissionResult] = {}
    submissions = find_submissions([tmp_path / "class"], small_course)
    pool.grade_all(
        submissions, small_course, Settings(), jobs, lambda r: results.update({r.submission: r})
    )
    assert set(results) == {"ada", "bob", "eve"}
    assert results["bob"].points == points
    assert results["bob"].problems[0].repeated is repeated
    assert asked[-1] == ("bob" if jobs > 1 else "eve", ["01-doubling"])
    assert len(asked) == 4 + (jobs > 1)


def test_reports_inside_the_class_are_refused(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    done = CliRunner().invoke(
        app, ["grade", str(tmp_path / "class"), "--out", str(tmp_path / "class/reports")]
    )
    assert done.exit_code == 2
    assert "Choose one beside it" in " ".join(done.output.split())
    assert list((tmp_path / "class").iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "line"),
    [("class", "2 submissions graded."), ("class/ada", "1 submission graded.")],
)
def test_how_many_were_graded_is_told(
    school: School, monkeypatch: pytest.MonkeyPatch, folder: str, line: str
) -> None:
    monkeypatch.setattr("grader.cli.own_course", lambda: school.course)
    handed_in = school.folder.parent / folder
    done = CliRunner().invoke(app, ["grade", str(handed_in), "--out", str(school.out)])
    assert line in done.output
