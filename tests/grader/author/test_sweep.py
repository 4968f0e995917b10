"""The sweep finds functions of torch with the same values as a forbidden function."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from grader.author import sweep
from grader.author.sweep import answering, left_open, sweep_findings
from grader.course import Course
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import TemplateProcess
from tests.lent import lent_sandbox

SOFTMAX = ("softmax", "softmin", "log_softmax", "logsumexp", "scaled_dot_product_attention")
NORMS = ("gelu", "layer_norm", "group_norm", "instance_norm", "batch_norm", "rms_norm")
ATTENTION = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")

WAYS = {
    "softmax": ("torch:softmax", "torch.nn:Softmax", "torch.distributions:SoftmaxTransform"),
    "logsumexp": ("torch:logcumsumexp", "torch.special:logsumexp"),
    "gelu": ("torch.nn:GELU",),
    "layer_norm": ("torch.nn.functional:layer_norm", "torch.nn:InstanceNorm1d"),
    "rms_norm": ("torch.nn.functional:rms_norm",),
    "scaled_dot_product_attention": ("torch._C._nn:scaled_dot_product_attention",),
    "MultiheadAttention": (
        "torch.nn:MultiheadAttention",
        "torch.nn.functional:multi_head_attention_forward",
    ),
}


@pytest.fixture(scope="module")
def sandbox(origin: TemplateProcess) -> Iterator[Sandbox]:
    with lent_sandbox(origin, call_seconds=30, submission_seconds=900) as sandbox:
        yield sandbox


KNOWN = {name for names in WAYS.values() for name in names}


def is_known(name: str) -> bool:
    return name in KNOWN


@pytest.mark.slow
def test_no_other_name_gives_access_to_a_forbidden_function(sandbox: Sandbox) -> None:
    sets = [SOFTMAX, ATTENTION, NORMS]
    assert left_open(sandbox, sets, is_known) == dict.fromkeys(sets, [])


@pytest.mark.slow
def test_each_function_is_found_if_none_is_forbidden(sandbox: Sandbox) -> None:
    ways_by_name = answering(sandbox, KNOWN)
    kinds = {name: {way.partition("=")[0] for way in ways} for name, ways in ways_by_name.items()}
    assert [name for kind, names in WAYS.items() for name in names if kind not in kinds[name]] == []


@pytest.mark.slow
def test_equal_functions_with_other_names_are_reported(sandbox: Sandbox) -> None:
    """Only LayerNorm is forbidden here. GroupNorm with one group returns the same values."""
    open_ways = left_open(sandbox, [("layer_norm",)], "torch.nn:GroupNorm".__eq__)
    output = "torch.nn.GroupNorm(1, 3)(y) answers as layer_norm, which is forbidden, "
    assert open_ways["layer_norm",] == [
        output + "where functions are taken away",
        output + "under the watch of a student's own run",
    ]


@pytest.mark.slow
def test_crashing_and_missing_functions_are_skipped(sandbox: Sandbox) -> None:
    answered = answering(sandbox, ["torch:PyTorchFileWriter", "torch:Gone", "torch:softmax"])
    assert [*answered] == ["torch:softmax"]


def test_torch_is_swept_again_if_the_forbidden_functions_change(
    small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[tuple[str, ...]] = []
    left: list[str] = []

    def found(sets, shares, number):
        swept.extend(sets)
        return dict.fromkeys(sets, left)

    monkeypatch.setattr(sweep, "_left_open_of_a_share", found)

    def findings(*, write: bool) -> list[str]:
        return sweep_findings(small_course, small_course.problems(), write=write)

    assert findings(write=False) == findings(write=True) == []
    assert len(swept) == 2
    assert findings(write=False) == []
    assert len(swept) == 2
    manifest = small_course.root / "course.toml"
    text = manifest.read_text()
    assert '"softmax"' in text
    manifest.write_text(text.replace('"softmax"', '"softmax", "logsumexp"'))
    left.append("torch.logsumexp(x, -1) answers as logsumexp")
    output = [f"{problem.id}: {left[0]}" for problem in small_course.problems()]
    assert findings(write=True) == findings(write=False) == output


@pytest.mark.parametrize("damaged", ["", "<<<<<<< HEAD", "[1]", "\udcff"])
def test_an_unreadable_record_is_written_again(
    small_course: Course, monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    path = small_course.root / "solutions/swept.json"
    path.write_bytes(damaged.encode("utf-8", "surrogateescape"))
    monkeypatch.setattr(
        sweep, "_left_open_of_a_share", lambda sets, shares, number: dict.fromkeys(sets, [])
    )
    assert sweep_findings(small_course, small_course.problems(), write=True) == []
    assert set(json.loads(path.read_text())) == {p.id for p in small_course.problems()}
