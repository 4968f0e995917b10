"""`grader doctor` lists installed and missing parts, and grades a submission."""

from __future__ import annotations

import sys

import pytest
import torch
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.grade import doctor
from grader.grade.provenance import torch_version
from grader.sandbox.starting import SandboxError


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine without a sandbox."""

    def fail(function: str, isolation: str) -> None:
        assert isolation == "sandbox"
        raise SandboxError("this machine can't keep student code in a sandbox: no kernel.\nMore.")

    monkeypatch.setattr(doctor, "call_apart", fail)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox exists on Linux only")
def test_a_machine_with_a_sandbox_can_grade() -> None:
    run = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert run.exit_code == 0, run.output
    for name in ("Python", "PyTorch", "Cores", "Memory", "Landlock", "seccomp", "Users"):
        assert name in run.output
    assert "it blocked all attacks of its self-test" in run.output


def test_a_machine_without_a_sandbox_gets_advice(no_sandbox: None) -> None:
    run = CliRunner().invoke(app, ["doctor"])
    assert run.exit_code == 1
    text = " ".join(run.output.split())
    assert "process, no sandbox: this machine can't keep student code in a sandbox" in text
    assert "grader grade --isolation process" in text
    assert "all files that you can" in text


@pytest.mark.skipif(sys.platform != "linux", reason="the layers exist on Linux only")
def test_a_missing_layer_is_reported_with_advice(
    no_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.sandbox.landlock.version", lambda: 0)
    monkeypatch.setattr("grader.sandbox.seccomp.usable", lambda: False)
    found = {finding.name: finding for finding in doctor.examine().findings}
    assert found["Course"].state.startswith("part one with 5 problems")
    assert found["Landlock"].state == "none"
    assert "kernel" in found["Landlock"].advice or "Linux 5.13" in found["Landlock"].advice
    assert "container" in found["seccomp"].advice


def test_the_version_of_torch_is_correct() -> None:
    assert torch_version() == str(torch.__version__)


def test_too_little_memory_for_all_cores_is_reported(
    no_sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "default_jobs", lambda: 10_000)
    assert any("--jobs" in advice for advice in doctor.examine().advice)
