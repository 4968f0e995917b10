"""The model that problem 07 saves is complete. Only a better model replaces it."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from grader.course import Course, own_course
from grader.errors import UsageError
from shared import pictures, saved_models
from shared.oracles.torch_gpt import TinyGPT
from shared.saved_models import SavedModel

SIZES = {"vocab_size": 3, "n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 2}
CONFIG = SIZES | {"dropout": 0.0, "bias": True}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pictures, "own_course", lambda: Course(tmp_path))
    return tmp_path / "problems" / saved_models.PROBLEM


def model(loss: float = 2.0, *, is_yours: bool = False) -> SavedModel:
    weights = TinyGPT(argparse.Namespace(**CONFIG)).gpt2_weights()
    return SavedModel(CONFIG, weights, "abc", loss, is_yours)


def test_a_saved_model_is_found_by_name_and_no_other_file_is_left(folder: Path) -> None:
    assert saved_models.read() is None
    kept = model(1.5)
    assert saved_models.save(kept) == "The model is saved in model.pt."
    assert saved_models.save(model(2.0), "poems") == "The model is saved in model-poems.pt."
    loaded, poems = saved_models.read(), saved_models.read("poems")
    assert loaded is not None
    assert poems is not None
    assert (loaded.config, loaded.characters, loaded.loss) == (CONFIG, "abc", 1.5)
    assert all(torch.equal(loaded.state[name], kept.state[name]) for name in kept.state)
    assert poems.loss == 2.0
    assert {*saved_models.names()} == {"", "poems"}
    assert {path.name for path in folder.iterdir()} == {"model.pt", "model-poems.pt"}


@pytest.mark.parametrize(
    ("first", "second", "first_is_kept"),
    [
        (model(2.0), model(1.0), False),
        (model(1.0), model(2.0), True),
        (model(1.0), model(2.0, is_yours=True), False),
        (model(2.0, is_yours=True), model(1.0), True),
        (model(2.0), model(2.0), False),
        (model(1.0), replace(model(2.0), held_out=True), False),
        (model(1.0), replace(model(2.0), characters="xyz"), False),
    ],
)
def test_the_better_model_is_kept(
    folder: Path, first: SavedModel, second: SavedModel, first_is_kept: bool
) -> None:
    saved_models.save(first)
    said = saved_models.save(second)
    loaded = saved_models.read()
    assert loaded is not None
    assert (loaded.loss, loaded.is_yours) == (
        (first.loss, first.is_yours) if first_is_kept else (second.loss, second.is_yours)
    )
    assert said.startswith(
        "model.pt already contains a better model" if first_is_kept else "The model is saved"
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: b"spoilt",
        lambda kept: b"",
        lambda kept: asdict(kept) | {"characters": "ab"},
        lambda kept: asdict(replace(kept, config=CONFIG | {"n_embd": 6})),
        lambda kept: {"config": CONFIG},
    ],
)
def test_a_damaged_model_is_reported_and_replaced(folder: Path, damage) -> None:
    saved_models.save(model())
    content = damage(model())
    if isinstance(content, bytes):
        saved_models.file().write_bytes(content)
    else:
        torch.save(content, saved_models.file())
    with pytest.raises(UsageError, match="can't be read. Train it again") as said:
        saved_models.read()
    lines = str(said.value).splitlines()
    assert len(lines) < 8
    assert max(map(len, lines)) < 80
    assert saved_models.save(model(9.0)) == "The model is saved in model.pt."


@pytest.mark.parametrize("folder_of_git", ["", "students"])
def test_git_ignores_models_here_and_in_students_copies(folder_of_git: str) -> None:
    ignored = (own_course().root / folder_of_git / ".gitignore").read_text("utf-8").splitlines()
    assert "/problems/07-tiny-gpt/model.pt" in ignored
    assert "/problems/07-tiny-gpt/model-*.pt" in ignored


@pytest.mark.parametrize(
    ("name", "config", "characters", "said"),
    [
        ("poems", CONFIG, "abc", "There is no model-poems.pt yet"),
        ("", CONFIG, "abd", "model.pt was trained on a text with other characters"),
        ("", CONFIG | {"n_layer": 2}, "abc", "or has other sizes"),
    ],
)
def test_training_continues_with_the_kept_model_only(
    folder: Path, name: str, config: dict[str, object], characters: str, said: str
) -> None:
    saved_models.save(model(1.5))
    assert saved_models.read_to_resume("", CONFIG, "abc").loss == 1.5
    with pytest.raises(UsageError, match=said):
        saved_models.read_to_resume(name, config, characters)


@pytest.mark.parametrize(
    ("option", "texts", "name"),
    [(None, [], ""), (None, ["a/Faust I.txt", "b.txt"], "Faust_I"), ("own", ["a.txt"], "own")],
)
def test_a_model_is_named_after_its_first_text(
    option: str | None, texts: list[str], name: str
) -> None:
    assert saved_models.name_for(option, texts) == name


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 41])
def test_an_impossible_file_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits"):
        saved_models.name_for(name, [])
