"""A model trains on text in any script or from several files. The last tenth is held out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader.errors import UsageError
from shared import training_text


def write_file(folder: Path, content: str, name: str = "text.txt") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("line", ["Привет, мир!\n", "春眠不覚暁\n", "नमस्ते दुनिया\n", "مرحبا\n"])
def test_any_script_is_decoded_unchanged(tmp_path: Path, line: str) -> None:
    text = training_text.read([write_file(tmp_path, line * 40)], n_positions=4)
    whole = torch.cat([text.training, text.held_out]).tolist()
    assert text.alphabet.decode(whole) == line * 40
    assert text.alphabet.characters == "".join(sorted(set(line)))
    assert len(text.alphabet.encode(text.prompt)) == 8


@pytest.mark.parametrize(
    ("ending", "prompt"),
    [("nd so on, said the Cat\n", "so on, s"), ("春眠不覚暁処処聞啼鳥", "春眠不覚暁処処聞")],
)
def test_a_prompt_starts_at_a_word(tmp_path: Path, ending: str, prompt: str) -> None:
    text = training_text.read([write_file(tmp_path, "." * 9 * len(ending) + ending)], n_positions=1)
    assert text.prompt == prompt


def test_the_course_provides_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = training_text.read(["alice"], n_positions=64)
    assert not text.is_the_course_s
    assert "Alice" in text.alphabet.decode(text.training.tolist())
    monkeypatch.chdir(tmp_path)
    write_file(tmp_path, "mine" * 30, "alice")
    assert training_text.read(["alice"], n_positions=4).alphabet.characters == "eimn"


def test_several_files_are_one_text_and_its_last_tenth_is_held_out(tmp_path: Path) -> None:
    files = [write_file(tmp_path, "ab" * 54, "1.txt"), write_file(tmp_path, "c" * 12, "2.txt")]
    text = training_text.read(files, n_positions=4)
    assert text.alphabet.characters == "\nabc"
    assert len(text.training) == 109
    assert text.held_out.tolist() == [3] * 12


def test_the_batches_of_the_held_out_text_are_full(tmp_path: Path) -> None:
    text = training_text.read([write_file(tmp_path, "abcdefgh" * 100)], n_positions=4)
    for x, y in text.held_out_batches(4):
        assert x.shape == y.shape == (16, 4)
        assert torch.equal(y, (x + 1) % 8)


def test_a_short_text_is_refused_with_the_required_length(tmp_path: Path) -> None:
    training_text.read([write_file(tmp_path, "a" * 650)], n_positions=64)
    with pytest.raises(UsageError, match="has 649 characters, but at least 650 are needed"):
        training_text.read([write_file(tmp_path, "a" * 649)], n_positions=64)
    with pytest.raises(UsageError, match="has 100 characters"):
        training_text.read([], n_positions=64, first=100)


def test_other_encodings_and_missing_files_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes("é".encode("latin-1") * 900)
    with pytest.raises(UsageError, match="is not a text in UTF-8: its byte 1"):
        training_text.read([path], n_positions=4)
    with pytest.raises(UsageError, match="can't be read: No such file"):
        training_text.read([tmp_path / "none.txt"], n_positions=4)


def test_the_rarest_characters_beyond_the_limit_become_one(tmp_path: Path) -> None:
    many = "".join(map(chr, range(0x4E00, 0x4E00 + training_text.MOST + 50)))
    text = training_text.read([write_file(tmp_path, many)], n_positions=4)
    assert len(text.alphabet.characters) == training_text.MOST
