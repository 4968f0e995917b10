"""Checkpoints in GPT-2's layout are read completely, checked by name, and loaded correctly."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from grader.course import Course, own_course
from grader.errors import UsageError
from shared import checkpoint, explore_checkpoint, pictures, saved_models
from shared.oracles.torch_gpt import TinyGPT

ROOT = own_course().root
SIZES = {"vocab_size": 7, "n_positions": 5, "n_embd": 6, "n_layer": 2, "n_head": 2}
CONFIG = SIZES | {"dropout": 0.0, "bias": True}


@pytest.fixture
def model() -> TinyGPT:
    torch.manual_seed(1)
    return TinyGPT(Namespace(**CONFIG))


@pytest.fixture
def tensors(model: TinyGPT) -> dict[str, Tensor]:
    """Return the weights in the layout of GPT-2's files."""
    matrices = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    return {
        name.removeprefix("transformer."): weight.mT.contiguous()
        if name.endswith(tuple(f"{matrix}.weight" for matrix in matrices))
        else weight
        for name, weight in model.gpt2_weights().items()
        if name != "lm_head.weight"
    }


def write_checkpoint(folder: Path, tensors: dict[str, Tensor], **metadata: str) -> Path:
    path = folder / "model.safetensors"
    save_file(tensors, path, metadata)
    return path


@pytest.mark.parametrize("prefix", ["", "transformer."])
@pytest.mark.parametrize("with_unused_tensors", [False, True])
def test_weights_are_read_unchanged(
    tmp_path: Path,
    model: TinyGPT,
    tensors: dict[str, Tensor],
    prefix: str,
    with_unused_tensors: bool,
) -> None:
    if with_unused_tensors:
        tensors |= {"h.0.attn.bias": torch.ones(1, 1, 5, 5), "h.1.attn.masked_bias": torch.ones(())}
        tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    named = {prefix * (name != "lm_head.weight") + name: w for name, w in tensors.items()}
    loaded = checkpoint.load(write_checkpoint(tmp_path, named, n_head="2"))
    assert loaded.config == CONFIG
    expected = model.gpt2_weights()
    assert loaded.state.keys() == expected.keys()
    assert all(torch.equal(loaded.state[name], expected[name]) for name in expected)


def test_the_number_of_heads_comes_from_config_json_or_head_dim_64(
    tmp_path: Path, tensors: dict[str, Tensor]
) -> None:
    path = write_checkpoint(tmp_path, tensors)
    assert checkpoint.load(path).config["n_head"] == 1
    (tmp_path / "config.json").write_text(json.dumps({"n_head": 3}))
    assert checkpoint.load(path).config["n_head"] == 3
    (tmp_path / "config.json").write_text(json.dumps({"n_head": 4}))
    with pytest.raises(UsageError, match="not a multiple of 4 heads"):
        checkpoint.load(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("h.1.ln_2.bias"), "Missing: h.1.ln_2.bias."),
        (lambda t: t.update({"h.0.extra": torch.ones(2)}), "Unknown: h.0.extra."),
        (
            lambda t: t.update({"h.0.mlp.c_fc.weight": t["h.0.mlp.c_fc.weight"].mT.contiguous()}),
            r"h.0.mlp.c_fc.weight has shape \(24, 6\) instead of \(6, 24\). This is the layout of",
        ),
        (
            lambda t: t.update({"ln_f.weight": torch.ones(3)}),
            r"ln_f.weight has shape \(3,\) instead of \(6,\)",
        ),
        (lambda t: t.update({"lm_head.weight": t["wte.weight"] + 1}), "they are one table"),
        (lambda t: t.pop("wte.weight"), "The tensor wte.weight is missing"),
        (lambda t: t.pop("h.0.attn.c_attn.bias"), "Unknown: h.0.attn.c_proj.bias"),
    ],
)
def test_invalid_weights_are_named(tensors: dict[str, Tensor], change, said: str) -> None:
    change(tensors)
    with pytest.raises(UsageError, match=said):
        checkpoint.from_gpt2(tensors, checkpoint.config_of(tensors, 2))


def test_a_damaged_or_missing_file_is_reported(tmp_path: Path, tensors: dict[str, Tensor]) -> None:
    path = write_checkpoint(tmp_path, tensors)
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole.replace(b'"F32"', b'"F99"')):
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match="not a safetensors file"):
            checkpoint.load(path)
    with pytest.raises(UsageError, match="can't be read: No such file"):
        checkpoint.load(tmp_path / "none")


# Loading into the GPT of the student or the course


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return problem 07's folder in a copy of the course, with the solution."""
    monkeypatch.setattr(pictures, "own_course", lambda: Course(tmp_path))
    folder = tmp_path / "problems" / "07-tiny-gpt"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / "07-tiny-gpt" / "problem.py", folder)
    return folder


def test_the_course_model_is_small_and_lists_its_characters() -> None:
    loaded = checkpoint.load(checkpoint.COURSE_MODEL)
    assert checkpoint.COURSE_MODEL.stat().st_size < 230_000
    assert loaded.config["n_head"] == 4
    assert len(loaded.characters) == loaded.config["vocab_size"]


@pytest.mark.parametrize("solved", [True, False])
def test_the_course_model_is_loaded_into_the_gpt_of_the_student_or_the_course(
    problem: Path, capsys: pytest.CaptureFixture[str], solved: bool
) -> None:
    if not solved:
        shutil.copy(ROOT / "problems" / "07-tiny-gpt" / "problem.py", problem)
    assert explore_checkpoint.explore("course", None, None, mine=False) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("model yours, 07\n" if solved else "model the course's\n")
    assert "All 29 tensors match" in shown
    assert "110,400 parameters" in shown
    assert saved_models.names() == [""]


def test_a_file_without_characters_shows_token_numbers(
    tmp_path: Path,
    problem: Path,
    tensors: dict[str, Tensor],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_checkpoint(tmp_path, tensors, n_head="2")
    assert explore_checkpoint.explore(str(path), [1, 2, 3], None, mine=False) == 0
    assert "The most probable tokens after 1 2 3:" in capsys.readouterr().out
    assert saved_models.names() == []
    said = explore_checkpoint.explore(str(path), [1, 7], None, mine=False)
    assert said == "--tokens: there is no token 7; tokens are from 0 to 6."


def test_a_gpt_with_different_names_is_reported(model: TinyGPT, tensors: dict[str, Tensor]) -> None:
    loaded = checkpoint.Checkpoint(CONFIG, checkpoint.from_gpt2(tensors, CONFIG))
    with pytest.raises(UsageError, match="Missing in your GPT: lm_head.weight, transformer"):
        checkpoint.copy_into(model, loaded)
