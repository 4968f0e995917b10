"""The audit finds errors in a course and reports none for a correct one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from syrupy.assertion import SnapshotAssertion

from grader.author import running
from grader.author.audit import Audit, run_audit
from grader.author.candidates import CandidateKind, candidates
from grader.author.mistake import mistaken_file
from grader.course import Course
from grader.diagnose.answers import answer_of
from grader.diagnose.fingerprints import Fingerprints
from grader.diagnose.naming import diagnose
from grader.diagnose.probe import Answers
from grader.errors import CourseError, UsageError
from tests.catalogue import write_mistakes
from tests.processes import descendants_of, wait_until_gone

MISTAKES = {
    "triples": ("the number is tripled", "return 3 * x"),
    "squares": ("the number is multiplied by itself", "return x * x"),
    "uses_softmax": ("softmax is called", "return x + x + 0 * x.softmax(-1)"),
}


@pytest.fixture
def audited(small_course: Course) -> Course:
    """Return the small course with a catalogue of mistakes and a variant."""
    solutions = small_course.root / "solutions/01-doubling"
    line = "    return x + x"
    write_mistakes(
        solutions, {name: (when, line, f"    {body}") for name, (when, body) in MISTAKES.items()}
    )
    (solutions / "variants").mkdir()
    (solutions / "variants/product.py").write_text(
        '"""A product."""\ndef double(x): return 2 * x\n'
    )
    return small_course


def audit(course: Course, *, write: bool = True) -> Audit:
    return run_audit(course, course.problems(), 1, write_fingerprints=write)


def test_a_correct_course_has_no_findings(audited: Course) -> None:
    results = audit(audited)
    assert results.findings == []
    assert results.summary() == (
        "caught 3 of 3 (by visible tests alone 3), named 3 of 3, wrongly failed 0 of 2"
    )
    kept = Fingerprints.load(audited.problems()[0].fingerprints)
    nine = Answers({"three": answer_of(torch.tensor([9.0]))}, {})
    (diagnosis,) = diagnose(kept, {"double": nine})
    assert diagnosis.names == ("squares", "triples")
    assert "as if the number is tripled." in diagnosis.sentence


def edit(course: Course, where: str, old: str, new: str) -> None:
    """Replace a text in a file of the course."""
    path = course.root / where
    path.touch()
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


STUB = "problems/01-doubling/problem.py"
README = "problems/01-doubling/README.md"
HINTS = "problems/01-doubling/hints.md"
TESTS = "problems/01-doubling/test_doubling.py"
PROBE = "problems/01-doubling/probe.py"
REFERENCE = "solutions/01-doubling/problem.py"
VARIANT = "solutions/01-doubling/variants/product.py"
EDITS = "solutions/01-doubling/mistakes.edits"


CHECK = 'check(problem.double(torch.ones(1)), oracles.doubled(torch.ones(1)), "double(x)")'
IDLE = "@pytest.mark.points(1)\ndef test_idle(problem):\n    '''nothing is compared'''\n\n\n"
UNSTEADY = f"""SEEN = []

@pytest.mark.points(1)
def test_busy(problem):
    '''it is seen'''
    SEEN.append(problem)
    {CHECK}

@pytest.mark.points(1)
def test_idle(problem):
    '''only after the other'''
    SEEN.pop()
    {CHECK}


"""


ERRORS = {
    "stub": (STUB, "raise NotImplementedError", "return x + x"),
    "solution": (REFERENCE, "    return x + x", "    x = x * 3\n    return x + x"),
    "variant": (VARIANT, "2 * x", "x * 4"),
    "mistake is right": (EDITS, "3 * x", "2 * x"),
    "mistake is no Python": (EDITS, "3 * x", "3 * (x"),
    "points in the README": (README, "Points: 4", "Points: 5"),
    "minutes in the README": (README, "5 minutes", "10 minutes"),
    "hint": (HINTS, "", "# Hints\n\n## divide\n"),
    "docstring": (TESTS, '"""double is right for other numbers"""', ""),
    "probe": (PROBE, "problem.double(", "problem.duoble("),
    "rule": (README, "`test_doubles`", "`test_hidden`"),
    "idle test": (TESTS, "# --- hidden", f"{IDLE}# --- hidden"),
    "unsteady test": (TESTS, "# --- hidden", f"{UNSTEADY}# --- hidden"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ERRORS)
def test_errors_of_a_course_are_found(
    audited: Course, snapshot: SnapshotAssertion, what: str
) -> None:
    edit(audited, *ERRORS[what])
    assert [finding.partition("\n")[0] for finding in audit(audited).findings] == snapshot


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "weight", "finding"),
    [
        ("half", "idea", "mistake half keeps 2 of 4 points, but should miss"),
        (
            "half",
            "idea of double",
            "mistake half keeps 2 of 4 points, but should miss the idea of double",
        ),
        (
            "half",
            "slip",
            "mistake half loses 2 of the 4 points of the problem, but should be a slip",
        ),
        ("triples", "idea", None),
        ("triples", "idea of double", None),
        ("half", "", None),
    ],
)
def test_the_points_of_a_mistake_must_fit_its_weight(
    audited: Course, mistake: str, weight: str, finding: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.author.weights.IDEA_KEEPS", 0.4)
    body = {"triples": "3 * x", "half": "2 * x if len(x) < 3 else x"}[mistake]
    path = write_mistakes(
        audited.root / "solutions/01-doubling",
        {mistake: ("something is wrong", "    return x + x", f"    return {body}")},
    )
    path.write_text(path.read_text().replace("(reference)", f"(reference) {weight}".strip()))
    weighed = [f for f in audit(audited).findings if "the idea" in f or "a slip" in f]
    assert [finding in f for f in weighed] == ([True] if finding else [])


def test_an_unknown_weight_is_refused(audited: Course) -> None:
    edit(audited, EDITS, "triples (reference)", "triples (reference) much")
    with pytest.raises(CourseError, match="a head .* '== name"):
        audit(audited)


def test_output_of_mistakes_is_not_printed(
    audited: Course, capfd: pytest.CaptureFixture[str]
) -> None:
    edit(audited, EDITS, "+    return 3", "+    print('three of them')\n+    return 3")
    assert audit(audited).findings == []
    assert "three of them" not in "".join(capfd.readouterr())


def test_switched_off_gradients_do_not_affect_the_next_mistake(audited: Course) -> None:
    off = "+    return 3 * x\n+\n+\n+import torch\n+torch.set_grad_enabled(False)\n"
    edit(audited, EDITS, "+    return 3 * x\n", off)
    assert audit(audited).findings == []
    assert torch.is_grad_enabled()


def test_correct_solutions_run_under_many_conditions(course: Course) -> None:
    for problem in course.problems():
        right = [c for c in candidates(course, [problem]) if c.kind is CandidateKind.VARIANT]
        all_conditions = [candidate.conditions for candidate in right]
        assert len({conditions.seed for conditions in all_conditions}) == len(right) > 5
        assert {conditions.reverse for conditions in all_conditions} == {True, False}


def test_a_damaged_file_of_fingerprints_is_reported_and_can_be_written_again(
    audited: Course,
) -> None:
    path = audited.problems()[0].fingerprints
    for damage in ("<<<<<<< HEAD\n", "[]", '{"mistakes": [["triples", 3]]}', ""):
        path.write_text(damage)
        with pytest.raises(CourseError, match=r"fingerprints\.json is damaged .* 01 --write-fing"):
            audit(audited, write=False)
    assert audit(audited).findings == []
    assert Fingerprints.load(path).mistakes


def test_a_missing_salt_is_found(audited: Course) -> None:
    audited.salt(audited.problems()[0]).unlink()
    assert any("salt.txt is missing" in finding for finding in audit(audited).findings)


def test_a_function_with_forbidden_calls_must_exist(audited: Course) -> None:
    more = 'forbidden = ["softmax"]\n\n[problems.forbidden_in]\ndubble = ["gelu"]\n'
    edit(audited, "course.toml", 'forbidden = ["softmax"]\n', more)
    (finding,) = audit(Course(audited.root)).findings
    assert "01-doubling has forbidden_in for 'dubble', which does not exist" in finding


def test_stale_fingerprints_are_found(audited: Course) -> None:
    audit(audited)
    edit(audited, EDITS, "3 * x", "5 * x")
    findings = audit(audited, write=False).findings
    assert any("fingerprints.json is not up to date" in f for f in findings)
    assert any("triples is caught but not named" in f for f in findings)


@pytest.fixture
def probed_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of mistakes and variants on which the probe ran."""
    names: list[str] = []
    answers = running._probe_answers

    def record_name(candidate, *arguments, **options):
        if candidate.kind in (CandidateKind.MISTAKE, CandidateKind.VARIANT):
            names.append(candidate.name)
        return answers(candidate, *arguments, **options)

    monkeypatch.setattr(running, "_probe_answers", record_name)
    return names


def test_the_probe_runs_again_if_answers_may_have_changed(
    audited: Course, probed_names: list[str]
) -> None:
    def probed(*, up_to_date: bool = True) -> list[str]:
        probed_names.clear()
        result = audit(audited, write=False)
        assert result.probed == len(probed_names)
        stale = "01-doubling: fingerprints.json is not up to date; write it with --write-finger"
        assert any(finding.startswith(stale) for finding in result.findings) is not up_to_date
        return sorted(probed_names)

    everything = ["product", "squares", "triples", "uses_softmax"]
    audit(audited)
    assert sorted(probed_names) == everything
    edit(audited, TESTS, "torch.ones(size)", "torch.ones(size) + 0")
    assert probed() == []
    edit(audited, EDITS, "x * x", "x * x * 1")
    assert probed() == ["squares"]
    edit(audited, EDITS, "x * x * 1", "x * x")
    edit(audited, VARIANT, "2 * x", "x * 2")
    assert probed() == ["product"]
    edit(audited, PROBE, "3.0", "6.0 / 2")
    assert probed() == everything
    audit(audited)
    answer = '["squares"], {"double": {"main": {"three": "float32 1 0 '
    fingerprints = "problems/01-doubling/fingerprints.json"
    edit(audited, fingerprints, f"{answer}9", f"{answer}8")
    assert probed(up_to_date=False) == ["squares"]


def test_a_mistake_is_shown_as_a_whole_file(audited: Course) -> None:
    assert "return 3 * x" in mistaken_file(audited, audited.problems(), "triples")
    with pytest.raises(UsageError, match="Did you mean triples"):
        mistaken_file(audited, audited.problems(), "tripled")
    with pytest.raises(UsageError, match="Give the number of one problem"):
        mistaken_file(audited, [], "triples")


def test_the_tests_of_a_mistake_stop_when_enough_points_are_lost(audited: Course) -> None:
    edit(audited, EDITS, "squares (reference)", "squares (reference) slip")
    problems = audited.problems()
    for all_tests in (False, True):
        results = run_audit(audited, problems, 1, write_fingerprints=True, all_tests=all_tests)
        ran = {o.candidate.name: len(o.result.tests) for o in results.of(CandidateKind.MISTAKE)}
        whole = len(results.of(CandidateKind.SOLUTION)[0].result.tests)
        assert ran["squares"] == whole
        assert (ran["triples"] == whole) == all_tests


@pytest.mark.slow
def test_a_skipped_test_runs_before_it_is_reported_as_useless(audited: Course) -> None:
    path = audited.root / "problems/01-doubling/test_doubling.py"
    text = path.read_text().replace("points(2)\ndef", "points(1)\ndef")
    call = 'check(problem.double(4 * torch.ones(1)), oracles.doubled(4 * torch.ones(1)), "f")'
    rare = f"def test_rare(problem):\n    '''rarely'''\n    {call}\n"
    path.write_text(f"{text}\n\n@pytest.mark.points(1)\n{rare}")
    assert audit(audited).findings == []


BUSY = """
import signal
import time
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from grader.author.running import several
    with several(2) as each:
        done = each(time.sleep, [0.0, *[100.0] * 8])
        next(done)
        print("started", flush=True)
        next(done)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_audit_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        started = descendants_of(process.pid)
        assert len(started) >= 2
        process.send_signal(how)
        wait_until_gone([process.pid, *started], 60)
        _, errors = process.communicate()
    assert errors.count("Traceback") == (how is signal.SIGINT)
