"""Run `explore.py --talk`: continue typed text with the GPT of problem 07 and `sample` of 08."""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from grader.code.loading import STUDENT_MODULE, load_module
from grader.course import SUBMISSION_FILE
from grader.errors import UsageError
from shared import pictures, saved_models, student_parts
from shared.oracles import sampling
from shared.saved_models import SavedModel
from shared.training_text import Alphabet

MODEL = saved_models.PROBLEM
SAMPLING = "08-sampling"

_HELP = """\
Type the beginning of a text. The model continues it; it does not answer. Ctrl-C stops it.
    T 0.5     set the temperature; 0 is greedy
    k 10      set top-k; k alone switches it off
    p 0.9     set top-p; p alone switches it off
    ? text    show how probable each next character is
    Enter     end the talk"""

LENGTH = 240
"""The number of tokens that the model adds to a text."""
_SETTING = re.compile(r"([Tkp])(?:\s*=?\s*(\d+(?:\.\d*)?|\.\d+))?")

Sample = Callable[..., Tensor]


@dataclass(frozen=True)
class Settings:
    """The sampling options, named like the arguments of `sample`."""

    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = 0.95

    def __str__(self) -> str:
        """Return the settings as a user types them, for example "T 0.8  k 10"."""
        settings_text = f"T {self.temperature:g}"
        settings_text += "" if self.top_k is None else f"  k {self.top_k}"
        return settings_text + ("" if self.top_p is None else f"  p {self.top_p:g}")

    def changed(self, name: str, value: str | None) -> Settings:
        """Return a copy of the settings with one setting changed.

        Args:
            name: the typed letter: T, k or p.
            value: the typed number. None switches k or p off, and sets T to 1.

        Raises:
            ValueError: the value is out of range.
        """
        if name == "T":
            return replace(self, temperature=float(value or "1"))
        if name == "k":
            if value is not None and int(float(value)) < 1:
                raise ValueError("k must be at least 1")
            return replace(self, top_k=None if value is None else int(float(value)))
        if value is not None and not 0 < float(value) <= 1:
            raise ValueError("p must be above 0 and at most 1")
        return replace(self, top_p=None if value is None else float(value))


@dataclass
class Model:
    """A trained model and its characters.

    Attributes:
        whose: "Your model" or "The course's model", the beginning of a message.
        forward: takes tokens (B, T) and returns logits (B, T, V) and a loss.
        characters: all characters, in the order of their token numbers.
        n_positions: the largest number of tokens that the model can read at once.
        read: a function that returns the logits of the next token for a list of tokens, for example
            with a cache. If it is None, `forward` is called instead.
    """

    whose: str
    forward: Callable[[Tensor], tuple[Tensor, Any]]
    characters: str
    n_positions: int
    read: Callable[[list[int]], Tensor] | None = None

    def __post_init__(self) -> None:
        self.alphabet = Alphabet(self.characters)

    def encode(self, text: str) -> list[int]:
        """Convert a text to tokens; characters without a token are omitted."""
        return self.alphabet.encode(text)

    def decode(self, token: int) -> str:
        """Convert a token to its character, and a tab to four spaces."""
        return self.alphabet.decode([token])

    def next_logits(self, tokens: list[int]) -> Tensor:
        """Return the logits of the next token, shape (1, V)."""
        if self.read is not None:
            return self.read(tokens)
        with torch.no_grad():
            logits, _ = self.forward(torch.tensor([tokens[-self.n_positions :]]))
        return logits[:, -1]


def main(arguments: Sequence[str]) -> None:
    """Run `explore.py --talk` with these arguments."""
    options = argparse.ArgumentParser(prog="explore.py", allow_abbrev=False)
    options.add_argument(
        "--talk", nargs="?", metavar="NAME", help="continue text with this saved model"
    )
    options.add_argument("--mine", action="store_true", help="use your code of all problems")
    asked = options.parse_args(arguments)
    talk(name=asked.talk, mine=asked.mine)


def talk(
    console: Console | None = None,
    ask: Callable[[str], str] = input,
    name: str | None = None,
    mine: bool = False,
) -> None:
    """Read lines of text and print a continuation of each, until an empty line is typed.

    Args:
        console: the console for the output; by default stdout.
        ask: reads a line after printing a prompt.
        name: the name of a saved model; by default the newest one.
        mine: whether to use the student's code of all problems, see `student_parts`.

    Raises:
        SystemExit: there is no saved model of this name, or its file can't be read.
    """
    torch.set_num_threads(1)  # more threads are slower for a small model
    console = console or Console(highlight=False, markup=False)
    kept = _read_saved(name, console)
    if mine:
        model, sample, whose = _student_parts_model(kept)
    else:
        model = load_model(kept)
        sample, whose = _sample()
        whose = f"{model.whose} reads, {whose} draws."
    console.print(f"{whose}\n{_HELP}", soft_wrap=True)
    settings = Settings()
    while True:
        try:
            line = ask(f"\n[{settings}] > ")
        except (EOFError, KeyboardInterrupt):
            line = ""
        if not line.strip():
            return
        if setting := _SETTING.fullmatch(line.strip()):
            settings = _changed(settings, setting, console)
        elif line.startswith("?"):
            _show_next(model, line[1:].removeprefix(" "), console)
        else:
            _print_continuation(model, sample, line, settings, console)


def _changed(settings: Settings, setting: re.Match[str], console: Console) -> Settings:
    try:
        return settings.changed(setting[1], setting[2])
    except ValueError as error:
        console.print(f"Not changed: {error}.")
        return settings


def _print_continuation(
    model: Model, sample: Sample, text: str, settings: Settings, console: Console
) -> None:
    """Print a text and its continuation, character by character."""
    unknown = "".join(sorted(set(text) - {*model.characters, " "}))
    if unknown:
        console.print(f"The model does not know the characters {unknown} and skips them.")
    console.print(text, end="", soft_wrap=True)
    try:
        for character in continuation(model, sample, text, settings):
            console.print(character, end="", soft_wrap=True)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        console.print(f"\nYour code raised {type(error).__name__}: {error}")
    console.print()


def continuation(model: Model, sample: Sample, text: str, settings: Settings) -> Iterator[str]:
    """Yield the characters of a sampled continuation of a text."""
    tokens = model.encode(text) or model.encode("\n") or [0]
    for _ in range(LENGTH):
        drawn = sample(model.next_logits(tokens), **vars(settings))
        tokens.append(int(drawn.item()))
        yield model.decode(tokens[-1])


def _show_next(model: Model, text: str, console: Console) -> None:
    """Print the most probable next characters, with bars for three temperatures."""
    logits = model.next_logits(model.encode(text) or model.encode("\n") or [0])[0]
    console.print("next    " + "".join(f"T = {t:<18g}" for t in (0.5, 1.0, 2.0)))
    tables = [(logits / t).softmax(-1) for t in (0.5, 1.0, 2.0)]
    for token in logits.topk(min(8, len(logits))).indices.tolist():
        bars = [
            f"{table[token]:6.1%} {'█' * round(12 * table[token].item()):<14}" for table in tables
        ]
        name = repr(model.decode(token)).strip("'\"")
        console.print(f"{name:>5}  " + " ".join(bars))


# The student's code, or the course's


def _read_saved(name: str | None, console: Console) -> SavedModel:
    """Return the saved model with this name, or the newest one if the name is None.

    If there are several models and the name is None, print their names.

    Raises:
        SystemExit: there is no model with this name, or no model at all, or the file can't be read.
    """
    names = saved_models.names()
    if name is None:
        name = names[0] if names else ""
        if len(names) > 1:
            known = ", ".join(each or "model" for each in names)
            console.print(
                f"Saved models: {known}. The model in use is {name or 'model'}. "
                "Use --talk NAME for another."
            )
    elif name == "model":
        name = ""
    elif name not in names:
        known = ", ".join(each or "model" for each in names) or "none yet"
        raise SystemExit(f"There is no model with the name {name}. Saved models: {known}.")
    try:
        kept = saved_models.read(name)
    except UsageError as error:
        raise SystemExit(str(error)) from None
    if kept is None:
        raise SystemExit(f"{saved_models.NONE_YET}\nThen come back and talk with it.")
    return kept


def _student_parts_model(kept: SavedModel) -> tuple[Model, Sample, str]:
    """Return a model of the student's parts, `sample`, and a list of the parts as text."""
    reading = [name for name in student_parts.TRAINING if name != "training step"]
    parts = student_parts.load_parts([*reading, *student_parts.GENERATION])
    config = argparse.Namespace(**kept.config)
    model, read = parts.load(parts.model(config), kept.state).eval(), None
    if code := parts["cache"]:
        cached = code.CachedGPT(code.GPTConfig(**kept.config))
        cached.load_state_dict(kept.state, strict=False)
        read = student_parts.CachedLogits(cached.eval(), config.n_positions)
    sample = (parts["sampling"] or sampling).sample
    return (
        Model("", model, kept.characters, config.n_positions, read),
        sample,
        parts.summary(),
    )


def load_model(kept: SavedModel) -> Model:
    """Return a saved model, run by the student's GPT if that is correct, else by the course's."""
    model, n_positions = kept.course_model(), kept.config["n_positions"]
    tokens = torch.arange(min(12, n_positions))[None] % kept.config["vocab_size"]
    with torch.no_grad():
        right = model(tokens)[0]
    yours = _students_model(kept, tokens, right)
    whose = (
        "The course's model (until your problem 07 is correct)" if yours is None else "Your model"
    )
    return Model(whose, yours or model, kept.characters, n_positions)


def _students_model(
    kept: SavedModel, tokens: Tensor, right: Tensor
) -> Callable[[Tensor], Any] | None:
    """Return the student's GPT with the saved weights, or None if its logits are not correct."""
    try:
        with redirect_stdout(io.StringIO()), torch.no_grad():
            code = _students(MODEL)
            model = code.GPT(code.GPTConfig(**kept.config))
            model.load_state_dict(kept.state, strict=False)
            is_right = torch.allclose(model.eval()(tokens)[0], right, rtol=1e-3, atol=1e-3)
    except Exception:
        return None
    return model if is_right else None


def _sample() -> tuple[Sample, str]:
    """Return a `sample` function and its name: the student's if correct, else the course's."""
    if code := student_parts.load_parts(["sampling"])["sampling"]:
        return code.sample, "your sample"
    return sampling.sample, "the course's sample (until yours is correct)"


def _students(problem_id: str) -> Any:
    return load_module(pictures.folder(problem_id) / SUBMISSION_FILE, f"{STUDENT_MODULE}talk")
