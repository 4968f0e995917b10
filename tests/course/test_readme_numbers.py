"""The numbers in the problems' READMEs equal computed numbers."""

from __future__ import annotations

import ast
import itertools
import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grader.code.course_modules import modules_of_course
from grader.course import own_course
from tests.course.pages import READMES, row

COURSE = own_course()
with modules_of_course(COURSE.root):
    from shared import worked_example
    from shared.oracles import attention


def digits(numbers: Tensor, places: int = 4) -> str:
    return ", ".join(f"{number:.{places}f}" for number in numbers.flatten().tolist())


# 01 and 02: softmax, and averages


def test_the_softmax_of_the_worked_example_is_correct() -> None:
    scores = torch.tensor([-1.0, -4, 0])
    powers = scores.exp()
    assert row("01", "$e^x$") == [*digits(powers[:2]).split(", "), "1", f"{powers.sum():.4f}"]
    assert row("01", "weight") == [*digits(scores.softmax(0)).split(", "), "1"]


@pytest.mark.parametrize(
    ("scores", "said"), [([2.0, 4], "0.8808; then"), ([4.0, 8], "then 0.9820")]
)
def test_the_prediction_of_01_is_correct(scores: list[float], said: str) -> None:
    assert f"{torch.tensor(scores).softmax(0)[1]:.4f}" in said
    assert said in READMES["01"]


@pytest.mark.parametrize("near", ["river", "money"])
def test_the_word_bank_moves_towards_its_neighbour(near: str) -> None:
    words = {"river": [3.0, 0], "money": [0.0, 3], "bank": [1.0, 1]}
    x = torch.tensor([words[near], words["bank"]])
    weights = (x @ x.T)[1].softmax(0)
    assert f"the weights are {digits(weights[:1])} and {digits(weights[1:])}" in READMES["02"]
    cells = row("02", f'in "{near} bank"')
    assert cells == ["[1, 1]", f"[{digits(weights @ x)}]"]


def test_the_attention_example_of_02_is_correct() -> None:
    x = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    k = x @ torch.tensor([[1.0, 1], [0, 1]]).T
    v = x @ torch.tensor([[2.0, 0], [1, -1]]).T
    weights = (x @ k.T).softmax(-1)
    output = (weights @ v).round(decimals=4) + 0.0
    for number in range(3):
        _, said, result = row_of_position(number + 1)
        assert said == digits(weights[number])
        assert result == digits(output[number])


def row_of_position(position: int) -> list[str]:
    """Return the three cells of the row for a position, in problem 02's table of queries."""
    rows = re.findall(rf"^\| {position} \|(.*)\|$", READMES["02"], re.MULTILINE)
    return next(cells for line in rows if len(cells := [c.strip() for c in line.split("|")]) == 3)


def test_the_picture_of_one_query_shows_the_numbers_of_the_example() -> None:
    script = COURSE.root / "problems/02-basic-attention/explore.py"
    (tables,) = re.findall(r"^tables = (\[.*?^\])", script.read_text(encoding="utf-8"), re.M | re.S)
    q, k, scores, weights, v, output = (
        torch.tensor(table, dtype=torch.float32) for _, _, table, _ in ast.literal_eval(tables)
    )
    x = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    assert torch.equal(q, x)
    assert torch.equal(k.T, x @ torch.tensor([[1.0, 1], [0, 1]]).T)
    assert torch.equal(v, x @ torch.tensor([[2.0, 0], [1, -1]]).T)
    assert torch.equal(scores, (q @ k)[:1])
    assert torch.allclose(weights, scores.softmax(-1), atol=0.005)
    assert torch.allclose(output, scores.softmax(-1) @ v, atol=0.005)


# 03: variances


def test_the_attention_by_hand_of_03_is_correct() -> None:
    q = torch.tensor([1.0, 2, 1, 0])
    scores = torch.stack([torch.tensor([1.0, 1, 1, 1]), torch.tensor([2.0, 0, 0, 3])]) @ q
    assert scores.tolist() == [4, 2]
    scaled, plain = (digits(s.softmax(0)).replace(", ", " and ") for s in (scores / 2, scores))
    assert f"Weights: {scaled}. Without the division they would be {plain}." in READMES["03"]


def test_the_dot_products_of_small_vectors_are_correct() -> None:
    for dimension in (1, 2, 3):
        signs = [*itertools.product((-1.0, 1.0), repeat=dimension)]
        dots = [
            sum(a * b for a, b in zip(q, k, strict=True))
            for q, k in itertools.product(signs, signs)
        ]
        counts = {
            dot: f"{dots.count(dot) * 2**dimension // len(dots)} of {2**dimension}"
            for dot in sorted(set(dots))
        }
        listed = ", ".join(f"{dot:g} ({count})" for dot, count in counts.items())
        variance = torch.tensor(dots).var(correction=0).item()
        assert row("03", str(dimension)) == [listed, f"{variance:g}"]


@pytest.mark.slow
def test_scores_of_512_entries_are_as_large_as_stated() -> None:
    torch.manual_seed(0)
    dots = torch.stack(
        [(torch.randn(10_000, 512) * torch.randn(10_000, 512)).sum(-1) for _ in "abc"]
    )
    extremes = dots.abs().amax(-1)
    assert f"{512**0.5:.1f}" in READMES["03"]
    assert dots.std() == pytest.approx(22.6, rel=0.02)
    assert 80 < extremes.mean() < 100
    assert 3.5 < extremes.mean() / 512**0.5 < 4.5


def test_covariances_explain_the_variance_of_the_scores_of_03() -> None:
    q, k, v = (getattr(worked_example, name).double() for name in "QKV")
    of_entries = [table.var(correction=0).item() for table in (q, k, v)]
    products = (q[:, None] * k[None]).flatten(0, 1)  # (16 pairs, 8 entries)
    covariances = torch.cov(products.T, correction=0)
    alone, together = covariances.diagonal().sum(), covariances.sum()
    scaled = attention.SCALED_SCORES.double().var(correction=0)
    text = READMES["03"]
    q_said, k_said, v_said = (f"{number:.4f}" for number in of_entries)
    assert f"queries have the variance {q_said}, those of the keys {k_said}" in text
    assert f"those of the values {v_said}" in text
    expected = 8 * of_entries[0] * of_entries[1]
    assert rf"$8 \cdot {q_said} \cdot {k_said} = {expected:.2f}$" in text
    assert f"the 16 scores is {together:.4f}. (After the division it is {scaled:.4f}" in text
    assert f"add up to {alone:.2f}." in text
    assert f"add up to {together - alone:.2f}. The sum of both is {together:.2f}" in text


def test_the_derivatives_of_a_weight_are_correct() -> None:
    weights, scores = torch.tensor([0.7311, 0.2689]), torch.tensor([2.0, 1])
    slopes = torch.func.jacrev(lambda s: s.softmax(-1))(scores)
    assert torch.allclose(scores.softmax(-1), weights, atol=1e-4)
    assert f"For a weight of 0.7311 this derivative is {slopes[0, 0]:.4f}." in READMES["03"]
    assert f"With weights 0.7311 and 0.2689 this derivative is {slopes[0, 1]:.4f}" in READMES["03"]
    assert slopes.sum(-1).abs().max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("n_embd", [64, 1024])
def test_scaled_scores_of_new_layers_have_a_variance_of_a_ninth(n_embd: int) -> None:
    torch.manual_seed(0)
    found = []
    for _ in range(20):
        query, key = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        x = torch.randn(200, n_embd)
        with torch.no_grad():
            scores = (query(x) * key(x.roll(1, 0))).sum(-1) / n_embd**0.5
        found.append(scores.var().item())
    mean = sum(found) / len(found)
    said = re.search(r"variance 1/9 = ([\d.]+), for \$n\$ = 64 as well as ", READMES["03"])
    assert said
    assert mean == pytest.approx(float(said[1]), rel=0.1)
    assert mean == pytest.approx(1 / 9, rel=0.1)


def test_dot_products_of_uniform_entries_have_the_stated_variance() -> None:
    torch.manual_seed(0)
    q, k = torch.rand(2, 200_000, 16)
    assert (q * k).sum(-1).var().item() == pytest.approx(7 * 16 / 144, rel=0.05)
    assert r"$7 d_k / 144$" in READMES["03"]


# 04 and 05: masks and heads


def test_the_masked_weights_of_04_are_correct() -> None:
    scores = torch.tensor([[0.0, 1, 3], [2, 0, 2]])
    late = scores[0].softmax(0)[:2]
    text = READMES["04"]
    assert f"| query 2 | 0 | 1 | 3 | {digits(scores[0, :2].softmax(0))}, 0 |" in text
    assert f"| query 3 | 2 | 0 | 2 | {digits(scores[1].softmax(0))} |" in text
    assert f"= {digits(scores[1].softmax(0)[:1])}$." in text
    assert f"would be {digits(late)}, 0, and sum to {late.sum():.4f}." in text
    assert f"then {digits(torch.tensor([3.0, 3, 9]).softmax(0))}. The 9 has" in text
    assert f"{10 * 0.2689414 + 20 * 0.7310586:.3f} and 20." in text


def test_the_outputs_of_two_heads_and_of_one_are_correct() -> None:
    q, k, v = (
        torch.tensor(rows)
        for rows in ([[1.0, 0], [0, 2]], [[1.0, 1], [0, 2]], [[10.0, 30], [20, 50]])
    )
    heads = [F.scaled_dot_product_attention(*(t[:, h : h + 1] for t in (q, k, v))) for h in (0, 1)]
    outputs = [float(f"{output:.2f}") for head in heads for output in head.flatten().tolist()]
    said = re.findall(r"^\| [01] \| [01] \| .* \| ([\d.]+) \|$", READMES["05"], re.MULTILINE)
    assert outputs == [float(number) for number in said]
    one = F.scaled_dot_product_attention(q, k, v)[0].tolist()
    assert f"the output $[{one[0]:.2f}, {one[1]:.2f}]$" in READMES["05"]


def test_the_counts_of_parameters_are_correct() -> None:
    assert f"{768 * 2304 + 2304:,}" in READMES["05"]
    assert f"{768 * 768 + 768:,}" in READMES["05"]

    def block_parameters(n_embd: int) -> int:
        return 12 * n_embd**2 + 13 * n_embd

    assert f"{block_parameters(768):,} for $C = 768$" in READMES["06"]
    assert f"12 · 64² + 13 · 64 = {block_parameters(64):,}" in READMES["06"]
    gpt2 = (50257 + 1024) * 768 + 12 * block_parameters(768) + 2 * 768
    assert f"{gpt2:,}" in READMES["07"]
    assert f"{(65 + 64) * 64 + 2 * block_parameters(64) + 2 * 64:,}" in READMES["07"]
    assert f"it would have {50257 * 768 / 1e6:.1f} million more." in READMES["07"]


def test_the_losses_of_07_are_correct() -> None:
    text = READMES["07"]
    logits = torch.tensor([2.0, 1, 0])
    assert f"give the probabilities {digits(logits.softmax(0))}." in text
    first, _, last = digits(-logits.log_softmax(0)).split(", ")
    assert rf"the loss is $-\ln 0.6652 = {first}$. If it is token 2, the loss is {last}." in text
    mean = -logits.log_softmax(0)[[0, 2]].mean()
    assert f"The mean of both is {mean:.4f}." in text
    first, _, last = digits(-logits.softmax(0).log_softmax(0)).split(", ")
    assert f"the losses would be {first} and {last}." in text
    assert f"ln 65 = {math.log(65):.2f}." in text
    assert f"ln 97 = {math.log(97):.2f} " in text
    assert f"= {0.6 * math.log(2):.4f}$$" in text


# 06 and 08: gelu, layer norm, temperatures


def test_the_numbers_of_gelu_and_layer_norm_are_correct() -> None:
    x = torch.tensor([-3.0, -2, -1, -0.5, 0, 0.5, 1, 2, 3])
    values = [f"{y:.4f}" if y else "0" for y in F.gelu(x, approximate="tanh").tolist()]
    assert row("06", "gelu") == values
    grid = torch.linspace(-5, 5, 100_001, dtype=torch.float64)
    tanh, erf = F.gelu(grid, approximate="tanh"), F.gelu(grid)
    assert f"differ by up to {(tanh - erf).abs().max():.6f}." in READMES["06"]
    assert (
        f"The lowest value is {tanh.min():.4f}, at about {grid[tanh.argmin()]:.2f}."
        in READMES["06"]
    )
    y = F.layer_norm(torch.tensor([1.0, 2, 3, 4]), (4,))
    assert f"$$y = ({digits(y, 5)})$$" in READMES["06"]
    weighted = y * torch.tensor([1.0, 2, 3, 4]) + torch.tensor([0.0, 0, 1, -1])
    assert f"this becomes {digits(weighted, 5)}." in READMES["06"]
    assert f"$y$ is {digits(F.layer_norm(torch.tensor([0.001, -0.001]), (2,)))}." in READMES["06"]


def test_the_probabilities_at_three_temperatures_are_correct() -> None:
    logits = torch.tensor([1.0, 4, 0, 2, 3])
    for name, t in (("T = 0.5", 0.5), ("T = 1", 1), ("T = 2", 2)):
        assert (
            f"| {name} | " + digits((logits / t).softmax(0)).replace(", ", " | ") in READMES["08"]
        )
    sums = [(logits / t).softmax(0).sort(descending=True).values.cumsum(0) for t in (0.5, 1, 2)]
    for sum_, kept in zip(sums, (2, 3, 4), strict=True):
        assert int((sum_ < 0.9).sum()) + 1 == kept
        assert digits(sum_[:kept]) in READMES["08"]
    assert f"sofa sum to {sums[2][1]:.4f}" in READMES["08"]
