"""The numbers in problem 09's README are correct. The limit on cost detects a missing cache."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from grader.code.cost import counting
from grader.code.course_modules import modules_of_course
from grader.code.loading import load_module
from grader.course import own_course
from grader.errors import Mismatch
from grader.run.rng import Rng
from tests.catalogue import mistake_files
from tests.course.pages import READMES, row

ROOT = own_course().root
README = READMES["09"]
SOLUTIONS = ROOT / "solutions/09-kv-cache"
REFERENCE = SOLUTIONS / "problem.py"

Q, K = torch.ones(2, 1), torch.tensor([[1.0], [0], [2], [2]])
V = torch.tensor([[10.0], [20], [60], [60]])


def digits(weights: Tensor) -> list[str]:
    return [f"{weight:.4f}" for weight in weights.flatten().tolist()]


def rounded(output: Tensor) -> str:
    return ", ".join(f"{number:.2f}".removesuffix(".00") for number in output.flatten().tolist())


def attention(n_new: int, **options: Any) -> str:
    return rounded(
        F.scaled_dot_product_attention(Q[:n_new], K[: 2 + n_new], V[: 2 + n_new], **options)
    )


def test_the_worked_example_has_the_computed_numbers() -> None:
    first, second = (digits((Q[:1] @ K[:count].T).softmax(-1)) for count in (3, 4))
    assert f"the weights {', '.join(first)}, and the output" in README
    terms = " + ".join(rf"{weight} \cdot {int(v)}" for weight, v in zip(first, V, strict=False))
    assert f"${terms} = {attention(1)}$" in README
    assert f"with the weights {', '.join(second[:-1])} and {second[-1]}" in README
    assert f"and its output is {attention(2).split(', ')[1]}." in README
    moved = torch.ones(2, 4, dtype=torch.bool).tril(2)
    assert row("09", "with the correct mask") == [attention(1), attention(2, attn_mask=moved)]


def test_is_causal_is_aligned_at_the_top_left() -> None:
    named = "with `is_causal=True`"
    assert row("09", named) == [attention(1, is_causal=True), attention(2, is_causal=True)]
    assert row("09", "without a mask") == [attention(1), attention(2)]


def test_the_mask_of_a_chunk_is_a_shifted_triangle() -> None:
    square, moved = torch.ones(5, 5).tril(), torch.ones(3, 5).tril(2)
    assert torch.equal(moved, square[2:])
    for number, line in enumerate(moved.int().tolist()):
        assert row("09", f"new token {number}") == [str(each) for each in line]
    for n_past in range(6):
        assert torch.ones(1, n_past + 1).tril(n_past).all()  # one new token needs no mask


def test_the_readme_has_the_cache_sizes_of_gpt2() -> None:
    reference = load_module(REFERENCE, "reference_09")
    assert reference.kv_cache_bytes(12, 768, 1) == 36_864
    assert reference.kv_cache_bytes(12, 768, 1024) == 37_748_736 == 36 * 2**20
    assert reference.kv_cache_bytes(48, 1600, 1024) == 300 * 2**20
    assert reference.kv_cache_bytes(4, 64, 11, 3, 1) == 16_896
    for number in ("36,864", "37,748,736", "36 MiB", "300 MiB", "16,896"):
        assert number in README


def operations(code: ModuleType, n_embd: int, length: int, how: str) -> int:
    """Return the number of operations for one more token after `length` tokens.

    `how` is "call" (with the cache), "whole text" (without the cache) or "generate".
    """
    sizes = {"vocab_size": 20, "n_positions": 140, "n_layer": 2, "n_head": 4, "n_embd": n_embd}
    model, idx = code.CachedGPT(code.GPTConfig(**sizes)), torch.randint(20, (1, length))
    if how == "whole text":
        return operations_of(lambda: model(idx))
    if how == "generate":
        one, two = (operations_of(lambda n=n: model.generate(idx[:, 1:], n)) for n in (1, 2))
        return two - one
    _, past = model(idx[:, :-1])
    return operations_of(lambda: model(idx[:, -1:], past))


def operations_of(run: Any) -> int:
    with counting() as cost:
        run()
    return cost.operations


def test_the_readme_has_the_operations_with_and_without_a_cache() -> None:
    reference = load_module(REFERENCE, "reference_09")
    cached = [operations(reference, 16, n, "call") for n in (17, 129)]
    again = [operations(reference, 16, n, "whole text") for n in (17, 129)]
    assert cached == [15_104, 29_440]
    assert again == [256_768, 3_797_760] == [17 * cached[0], 129 * cached[1]]
    assert row("09", "with a cache") == [f"{n:,}" for n in cached]
    assert row("09", "without") == [f"{n:,}" for n in again]


@pytest.mark.parametrize(
    ("name", "least", "most"), [("cache", 1, 3), ("generate_without_cache", 8, 20)]
)
def test_the_cost_of_a_token_grows_less_with_a_cache(
    name: str, least: float, most: float, tmp_path: Path
) -> None:
    (problem,) = own_course().select(["09"])
    files = {"cache": REFERENCE, **mistake_files(own_course(), problem, tmp_path)}
    code = load_module(files[name], f"{name}_09")
    few, many = (operations(code, 32, n, "generate") for n in (17, 129))
    assert least < many / few < most


WITHOUT_A_CACHE = """
_forward = CachedGPT.forward

def longer(self, idx):
    logits, _ = _forward(self, idx)  # the whole text, each time
    return torch.cat([idx, logits[:, -1].argmax(-1, keepdim=True)], -1)

"""
TRICKS = {
    ("keeps the generated text", "generate"): """
last = {}

def generate(self, idx, n):
    if last.get("text") != idx.tolist():
        out = idx
        for _ in range(3):
            out = longer(self, out)
        last.update(text=idx.tolist(), out=out)
    torch.ones(1, 9) @ torch.ones(9, 1)
    return last["out"][:, :idx.shape[1] + n]

CachedGPT.generate = generate
""",
    ("wastes operations on one token, so that two cost no more", "generate"): """
def generate(self, idx, n):
    out = idx
    for _ in range(n):
        out = longer(self, out)
    if n == 1:
        longer(self, idx)
        torch.ones(1, 9) @ torch.ones(9, 1)
    return out

CachedGPT.generate = generate
""",
    ("computes the result of each next token in advance", "call"): """
table = {}

def forward(self, idx, past=None):
    if past is not None:
        torch.ones(1, 9) @ torch.ones(9, 1)
        return table[int(idx)]
    for token in range(self.config.vocab_size):
        table[token] = _forward(self, torch.cat([idx, torch.tensor([[token]])], -1))
    return _forward(self, idx)

CachedGPT.forward = forward
""",
    ("computes outside of counted calls", "call"): """
def forward(self, idx, past=None):
    return torch.zeros(1, idx.shape[1], self.config.vocab_size), [(idx, idx)]

CachedGPT.forward = forward
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "how"), TRICKS)
def test_code_that_hides_its_operations_fails(name: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "problem.py"
    trick = WITHOUT_A_CACHE + TRICKS[name, how]
    path.write_text(REFERENCE.read_text(encoding="utf-8") + trick)
    with modules_of_course(ROOT):
        tests = load_module(ROOT / "problems/09-kv-cache/test_kv_cache.py", "tests_of_09")
        code = load_module(path, "tricks_of_09")
        with pytest.raises(Mismatch, match="floating point operations"):
            tests.check_cost(code, Rng(0), tests.COSTLY, how)
