"""Slips of newcomers, and what is said of them: a name rests on numbers, no second one is false.

Each slip is a right solution with an edit, as in a catalogue, but it is in none.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader.course import own_course
from grader.testing.diagnosis.fingerprints import Fingerprints
from grader.testing.diagnosis.naming import diagnose
from grader.testing.diagnosis.probe import ask, load_probe
from grader.testing.local_files import LocalFiles
from grader.testing.quiet import quiet

COURSE = own_course()
PROBLEMS = {problem.id[:2]: problem for problem in COURSE.problems()}


def told(number: str, folder: Path, *edits: tuple[str, str]) -> list[str]:
    """Return what is said of the right solution with these edits."""
    problem = PROBLEMS[number]
    text = COURSE.solution(problem).read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "problem.py"
    path.write_text(text, encoding="utf-8")
    probe = load_probe(problem)
    assert probe is not None
    with quiet(), torch.enable_grad():
        answers = ask(probe, LocalFiles(lambda _: path)(problem))
    return [each.sentence for each in diagnose(Fingerprints.load(problem.fingerprints), answers)]


ROW = "self.{0} = nn.Linear(n_embd, n_embd, bias=bias)"
BARE = "self.{0} = nn.Parameter(torch.rand(n_embd, n_embd))"
PLACES = "places = torch.arange(seq_len, device=idx.device)"
OWN_MASK = "mask = causal_mask(q.shape[-2], k.shape[-2], x.device)"
ROOT = "q @ k.mT / math.sqrt(q.shape[-1])"
DRAWN = "drawn.reshape(logits.shape[:-1])"

SILENT = {
    "bare parameters in place of layers": (
        "02",
        *((ROW.format(name), BARE.format(name)) for name in ("query", "key", "value")),
        (
            "attention(self.query(x), self.key(x), self.value(x))",
            "attention(x @ self.query, x @ self.key, x @ self.value)",
        ),
    ),
    "the wrong side of the mask is cut": (
        "09",
        (OWN_MASK, "t, n = x.shape[1], k.shape[-2]; mask = causal_mask(n, n, x.device)[:, -t:]"),
    ),
    "positions count the sequences": (
        "07",
        (PLACES, "places = torch.arange(idx.shape[0], device=idx.device)"),
    ),
}


@pytest.mark.parametrize("slip", SILENT)
def test_where_exceptions_say_more_than_any_name_there_is_none(slip: str, tmp_path: Path) -> None:
    assert told(SILENT[slip][0], tmp_path, *SILENT[slip][1:]) == []


def test_one_name_is_enough(tmp_path: Path) -> None:
    for number, edits, says in [
        ("01", [("exponentials.sum(dim, keepdim=True)", "exponentials.sum(dim)")], "summed over"),
        ("05", [("q, k, v = (split_heads", "k, q, v = (split_heads")], "changed places"),
        (
            "04",
            [
                (
                    "return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)",
                    "w = torch.softmax(scores, dim=-1) * mask\n"
                    "    return w / w.sum(-1, keepdim=True)",
                )
            ],
            "the mask comes after exp",
        ),
        (
            "07",
            [('block in self.transformer["h"]:', 'block in self.transformer["h"][:1]:')],
            "first block",
        ),
        (
            "07",
            [
                (
                    'for block in self.transformer["h"]:\n            x = block(x)',
                    'for block in self.transformer["h"]:\n            y = block(x)\n        x = y',
                )
            ],
            "each block gets the embeddings",
        ),
    ]:
        (only,) = told(number, tmp_path, *edits)
        assert says in only
        assert "Or as if" not in only


ESTIMATED = {
    "a buffer of another name": (
        "04",
        [
            (
                'self.register_buffer("mask", causal_mask(n_positions), persistent=False)',
                'self.register_buffer("tril", causal_mask(n_positions))',
            ),
            ("n_positions = self.mask.shape[-1]", "n_positions = self.tril.shape[-1]"),
            ("self.mask[:T, :T]", "self.tril[:T, :T]"),
        ],
        "`mask` is missing, and there is `tril`",
    ),
    "a norm of another name": (
        "07",
        [
            ('"ln_f": nn.LayerNorm', '"norm": nn.LayerNorm'),
            ('self.transformer["ln_f"](x)', 'self.transformer["norm"](x)'),
        ],
        "`ln_f` is missing, and there is `norm`",
    ),
    "softmax in float32": (
        "03",
        [
            (
                "weights = torch.softmax(scores, dim=-1)",
                "weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)",
            )
        ],
        "somewhere the numbers become float32",
    ),
    "a power that nobody listed": (
        "03",
        [(ROOT, "q @ k.mT / q.shape[-1] ** (1 / 3)")],
        "divided by d_k^(1/3); they should be divided by √d_k",
    ),
    "a root twice too large": (
        "03",
        [(ROOT, "q @ k.mT / (2 * math.sqrt(q.shape[-1]))")],
        "divided by √d_k and by 2;",
    ),
    "a scale of several sizes": (
        "05",
        [
            (
                "q @ k.mT / math.sqrt(q.shape[-1])",
                "q @ k.mT / math.sqrt(q.shape[-1] * q.shape[1] * q.shape[2])",
            )
        ],
        "divided by √n_embd and by √T; they should be divided by √head_dim",
    ),
    "a mask that hides the position before": (
        "04",
        [(".tril()", ".tril(-2)")],
        "neither itself nor the one before it; it should see itself and all before it",
    ),
    "a mask that hides the own position": (
        "09",
        [(".tril(length - n_new)", ".tril(length - n_new - 1)")],
        "sees those before it, but not itself;",
    ),
    "keys joined along the heads": (
        "09",
        [
            ("torch.cat([past[0], k], dim=-2)", "torch.cat([past[0], k], dim=1)"),
            ("torch.cat([past[1], v], dim=-2)", "torch.cat([past[1], v], dim=1)"),
        ],
        "joined along the heads, not along the length",
    ),
    "one token for all rows": ("08", [(DRAWN, "drawn[0, 0]")], "a single number comes back"),
    "squeeze": ("08", [(DRAWN, "drawn.squeeze()")], "all comes back in one long row"),
    "two slips at once": (
        "08",
        [
            ("logits = keep_top_k(logits, top_k)", "keep_top_k(logits, top_k)"),
            (DRAWN, "drawn.reshape(*logits.shape[:-1], 1)"),
        ],
        "draws the same tokens with top_k as without",
    ),
    "argmax of a mask without True": (
        "08",
        [
            ("    if p == 1:  # rounded sums may reach 1 before the last token\n", ""),
            ("        return logits\n    largest_first", "    largest_first"),
            (
                "before >= p)",
                "torch.arange(logits.shape[-1]) > "
                "(probabilities.cumsum(-1) > p).int().argmax(-1, keepdim=True))",
            ),
        ],
        "where all should be kept, only the largest entry is",
    ),
    "a norm with two slips": (
        "06",
        [
            (
                "variance = centred.square().mean(-1, keepdim=True)",
                "variance = x.var(-1, keepdim=True)",
            ),
            ("eps: float = 1e-5) -> None", "eps: float = 2e-3) -> None"),
        ],
        "divided by n - 1, not by n; eps is 0.002 by default; it should be 1e-05",
    ),
}


@pytest.mark.parametrize("slip", ESTIMATED)
def test_what_no_list_holds_is_read_off_the_numbers(slip: str, tmp_path: Path) -> None:
    number, edits, says = ESTIMATED[slip]
    found = told(number, tmp_path, *edits)
    assert any(says in text for text in found), found


@pytest.mark.slow
@pytest.mark.parametrize("number", PROBLEMS)
def test_nothing_is_estimated_of_what_is_right(number: str) -> None:
    problem = PROBLEMS[number]
    solution, probe = COURSE.solution(problem), load_probe(problem)
    assert probe is not None
    for path in (solution, *sorted((solution.parent / "variants").glob("*.py"))):
        with quiet(), torch.enable_grad():
            answers = ask(probe, LocalFiles(lambda _, path=path: path)(problem))
        said = [each.when for given in answers.values() for each in given.estimates]
        assert not said, (path.stem, said)
