"""Let the model of problem 07 continue typed text, with `sample` of problem 08."""

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
    T 0.5     another temperature; 0 is greedy
    k 10      top-k; k alone switches it off
    p 0.9     top-p; p alone switches it off
    ? text    how probable each next character is
    Enter     ends the talk"""

LENGTH = 240
"""How many tokens the model adds."""
_SETTING = re.compile(r"([Tkp])(?:\s*=?\s*(\d+(?:\.\d*)?|\.\d+))?")

Sample = Callable[..., Tensor]


@dataclass(frozen=True)
class Settings:
    """The options for drawing tokens, with the names of `sample`'s arguments."""

    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = 0.95

    def __str__(self) -> str:
        """Return the settings in the form in which users type them."""
        settings_text = f"T {self.temperature:g}"
        settings_text += "" if self.top_k is None else f"  k {self.top_k}"
        return settings_text + ("" if self.top_p is None else f"  p {self.top_p:g}")

    def changed(self, name: str, value: str | None) -> Settings:
        """Return the settings with one of them changed.

        Raises:
            ValueError: the value is out of range.
        """
        if name == "T":
            return replace(self, temperature=float(value or "1"))
        if name == "k":
            if value is not None and int(float(value)) < 1:
                raise ValueError("k is 1 or more")
            return replace(self, top_k=None if value is None else int(float(value)))
        if value is not None and not 0 < float(value) <= 1:
            raise ValueError("p is above 0 and at most 1")
        return replace(self, top_p=None if value is None else float(value))


@dataclass
class Model:
    """A trained model and its characters.

    Attributes:
        whose: "Your model" or "The course's model", for a message.
        forward: takes tokens (B, T) and returns logits (B, T, V) and a loss.
        characters: all characters, in the order of their token numbers.
        n_positions: the largest number of tokens that it can read at once.
        read: a function that takes a list of tokens and returns the next logits, for example with a
            cache; None to call `forward`.
    """

    whose: str
    forward: Callable[[Tensor], tuple[Tensor, Any]]
    characters: str
    n_positions: int
    read: Callable[[list[int]], Tensor] | None = None

    def __post_init__(self) -> None:
        self.alphabet = Alphabet(self.characters)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; characters without a token are omitted."""
        return self.alphabet.encode(text)

    def decode(self, token: int) -> str:
        """Return a token's character; a tab becomes four spaces."""
        return self.alphabet.decode([token])

    def next_logits(self, tokens: list[int]) -> Tensor:
        """Return the logits of the next token, (1, V)."""
        if self.read is not None:
            return self.read(tokens)
        with torch.no_grad():
            logits, _ = self.forward(torch.tensor([tokens[-self.n_positions :]]))
        return logits[:, -1]


def main(arguments: Sequence[str]) -> None:
    """Run `explore.py --talk` with these arguments."""
    options = argparse.ArgumentParser(prog="explore.py", allow_abbrev=False)
    options.add_argument("--talk", nargs="?", metavar="NAME", help="the name of a trained model")
    options.add_argument("--mine", action="store_true", help="use your own parts throughout")
    asked = options.parse_args(arguments)
    talk(name=asked.talk, mine=asked.mine)


def talk(
    console: Console | None = None,
    ask: Callable[[str], str] = input,
    name: str | None = None,
    mine: bool = False,
) -> None:
    """Continue typed text until an empty line is typed.

    Args:
        console: for the output.
        ask: reads a line.
        name: the name of a trained model; by default the newest.
        mine: whether to build the model from the student's parts.

    Raises:
        SystemExit: there is no trained model; the message has the command that trains one.
    """
    torch.set_num_threads(1)  # as in training: more only wait for each other
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
    """Show a text and its continuation, character by character."""
    unknown = "".join(sorted(set(text) - {*model.characters, " "}))
    if unknown:
        console.print(f"The model never saw {unknown} and reads on without.")
    console.print(text, end="", soft_wrap=True)
    try:
        for character in continuation(model, sample, text, settings):
            console.print(character, end="", soft_wrap=True)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        console.print(f"\nYour code stops with {type(error).__name__}: {error}")
    console.print()


def continuation(model: Model, sample: Sample, text: str, settings: Settings) -> Iterator[str]:
    """Draw and yield the characters that follow a text."""
    tokens = model.encode(text) or model.encode("\n") or [0]
    for _ in range(LENGTH):
        drawn = sample(model.next_logits(tokens), **vars(settings))
        tokens.append(int(drawn.item()))
        yield model.decode(tokens[-1])


def _show_next(model: Model, text: str, console: Console) -> None:
    """Show the most probable next characters as bars, at three temperatures."""
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
    """Return a saved model, and print its name if there are several.

    Raises:
        SystemExit: there is no such model; the message has the command that trains one, or the
            names of all models.
    """
    names = saved_models.names()
    if name is None:
        name = names[0] if names else ""
        if len(names) > 1:
            known = ", ".join(each or "model" for each in names)
            console.print(f"Kept are: {known}. This is {name or 'model'}; --talk NAME picks.")
    elif name == "model":
        name = ""
    elif name not in names:
        known = ", ".join(each or "model" for each in names) or "none yet"
        raise SystemExit(f"There is no model of the name {name}. Kept are: {known}.")
    try:
        kept = saved_models.read(name)
    except UsageError as error:
        raise SystemExit(str(error)) from None
    if kept is None:
        raise SystemExit(f"{saved_models.NONE_YET}\nThen come back and talk with it.")
    return kept


def _student_parts_model(kept: SavedModel) -> tuple[Model, Sample, str]:
    """Return a model of the student's parts, a sample function, and a line that lists the parts."""
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
    """Return a saved model, with the student's code if that is correct."""
    model, n_positions = kept.course_model(), kept.config["n_positions"]
    tokens = torch.arange(min(12, n_positions))[None] % kept.config["vocab_size"]
    with torch.no_grad():
        right = model(tokens)[0]
    yours = _students_model(kept, tokens, right)
    whose = "The course's model (until your problem 07 is right)" if yours is None else "Your model"
    return Model(whose, yours or model, kept.characters, n_positions)


def _students_model(
    kept: SavedModel, tokens: Tensor, right: Tensor
) -> Callable[[Tensor], Any] | None:
    """Return the student's GPT with these weights, if its logits are correct."""
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
    """Return the student's `sample` if it is correct, otherwise the course's; and its name."""
    if code := student_parts.load_parts(["sampling"])["sampling"]:
        return code.sample, "your sample"
    return sampling.sample, "the course's sample (until yours is right)"


def _students(problem_id: str) -> Any:
    return load_module(pictures.folder(problem_id) / SUBMISSION_FILE, f"{STUDENT_MODULE}talk")
