"""Define the questions of problem 04: calls whose answers identify mistakes."""

import math

import torch

from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters
from shared.three_layers import (
    about_parameters,
    filled,
    layer_weights,
    like_layer_weights,
)
from shared.worked_example import LAYERS, loops_over_pairs

HUGE = 4e307


def pattern(*shape):
    """Return a mask that is not symmetric.

    It contains True and False along every dimension of size 3 or more.
    """
    places = torch.meshgrid(*map(torch.arange, shape), indexing="ij")
    return sum((1 + n % 2) * place for n, place in enumerate(reversed(places))) % 3 != 1


def double(rows):
    """Convert rows of numbers to a float64 tensor."""
    return torch.tensor(rows, dtype=torch.float64)


def probe(problem):
    """Return the questions about each function and about several aspects of the class."""
    return {
        "causal_mask": about_mask(problem),
        "masked_softmax": about_softmax(problem),
        **about_module(problem),
        "CausalAttention: layers": about_parameters(
            lambda width, bias: problem.CausalAttention(width, 3, bias),
            lambda: problem.CausalAttention(n_positions=2),
        ),
    }


def about_mask(problem):
    """Return questions about `causal_mask`."""

    def ignores_device():
        problem.causal_mask(3, device="cpu")
        return edges.refusal(lambda: problem.causal_mask(3, device="nowhere")) == 0

    def far_back():
        """Return mask[-1, 0] of a large mask, and (number of rows) / (expected number)."""
        many = 270 if loops_over_pairs(problem.causal_mask) else 1030
        mask = problem.causal_mask(many)
        return torch.tensor([float(mask[-1, 0]), len(mask) / many])

    return Part(
        main={f"of {size}": lambda size=size: problem.causal_mask(size) for size in (1, 4, 6)},
        edges={
            "is bool": lambda: problem.causal_mask(3).dtype == torch.bool,
            "by name": lambda: problem.causal_mask(seq_len=3, device=None).double(),
            "ignores device": ignores_device,
            "far back": far_back,
            "random state moves": lambda: edges.moves_random_state(lambda: problem.causal_mask(3)),
        },
    )


def about_softmax(problem):
    """Return questions about `masked_softmax`."""

    def called(scores, mask):
        return problem.masked_softmax(scores, mask)

    def weigh(scores, mask):
        return called(scores.clone(), mask.clone()).double()

    def full(*shape):
        return weigh(2 * numbers(*shape, start=0.3), pattern(*shape))

    def plain_row_below():
        mask = torch.cat([pattern(3, 5), torch.ones(1, 5).bool()])
        return weigh(2 * numbers(4, 5, start=0.3), mask)

    def row(scores, allowed):
        """Return the weights of one row, rounded to two decimals; "1" in `allowed` means True."""
        weights = weigh(double([scores]), torch.tensor([[place == "1" for place in allowed]]))
        return weights.mul(100).round().div(100)

    def gradient_beside_1000():
        scores = double([[0.5, 1e3, -0.25, 1.0], [1e3, 1.5, 0.75, -1e3]]).requires_grad_()
        mask = torch.tensor([[True, False, True, True], [False, True, True, False]])
        return edges.slope(problem.masked_softmax(scores.clone(), mask), scores)

    def hidden_ones_count():
        """Return whether masked weights differ from 0, for ordinary and for very large scores."""
        mask, far = pattern(3, 5), torch.tensor([[True, True, False]])
        weights = [weigh(numbers(3, 5), mask)[~mask], weigh(double([[0.0, 2e3, -1.0]]), far)[~far]]
        return torch.tensor([bool((each != 0).any()) for each in weights])

    def beside_what_is_right():
        """Return two errors: of the sum of two weights, and of (first weight) / (their sum)."""
        weights = weigh(double([[0.5, 9.0, 0.25]]), torch.tensor([[True, False, True]]))[0, [0, 2]]
        share = float(weights[0] / weights.sum())
        return float(weights.sum()) - 1, share - 1 / (1 + math.exp(-0.25))

    def falls_short():
        """Return whether the sum is slightly below 1, but the ratio of the weights is correct."""
        less, off = beside_what_is_right()
        return abs(off) < 1e-13 and 1e-14 < -less < 1e-3

    def half_precision():
        return (
            problem.masked_softmax(numbers(3, 5).bfloat16(), pattern(3, 5)).dtype == torch.bfloat16
        )

    def rows_far_apart():
        mask = torch.tensor([[True, True, False]]).repeat(2, 1)
        return weigh(double([[0.5, 1.0, 3.0], [2000.0, 2001.0, 1e3]]), mask)

    given = {"scores": numbers(2, 4, 3), "mask": pattern(4, 3)}
    return Part(
        main={
            "all 3, 3-D": lambda: full(3, 3, 3),
            "all 3, 4-D": lambda: full(3, 3, 3, 3),
            "a plain row": plain_row_below,
            "3-D": lambda: full(3, 5, 4),
            "4-D": lambda: full(3, 4, 6, 5),
        },
        edges=edges.of_function(called, given)
        | {
            "one mask for all": lambda: weigh(2 * numbers(2, 3, 4, 5), pattern(1, 5)),
            "a mask for each of a batch": lambda: weigh(numbers(3, 2, 4, 5), pattern(3, 1, 4, 5)),
            "one place left": lambda: row([0.5, 1.5, -0.5], "010"),
            "allowed far below": lambda: row([-1e12, 0.5, -2e12, 1.5], "1010"),
            "allowed near the lowest": lambda: row([-HUGE, 0.5, -2 * HUGE, 1.5], "1010"),
            "allowed at 1000": lambda: row([1000.0, 0.5, 1001.0, 1.5], "1010"),
            "hidden at 720": lambda: row([0.0, 720.0, 1.0, 720.5], "1010"),
            "hidden near the highest": lambda: row([-HUGE, 2 * HUGE, -3 * HUGE, 4 * HUGE], "1010"),
            "rows far apart": rows_far_apart,
            "hidden ones count": hidden_ones_count,
            "small weights are 0": lambda: (
                weigh(double([[0, 16]]), pattern(1, 2) | True)[0, 0] == 0
            ),
            "rows fall short": falls_short,
            "half precision": half_precision,
            "digits are lost": lambda: 1e-12 < abs(beside_what_is_right()[1]) < 1e-5,
            "gradient, hidden at 1000": gradient_beside_1000,
        },
    )


def about_module(problem):
    """Return two groups of questions about the output of `CausalAttention`.

    In the second group, the layers are equal, so swapped layers have no effect. So they cannot hide
    other mistakes in this group.
    """

    def made(n_embd=3, n_positions=6, bias=True, dtype=torch.float64):
        module = problem.CausalAttention(n_embd, n_positions, bias).eval()
        if not bias and any("bias" in name for name in parameters(module)):
            raise ValueError("a bias in spite of bias=False")
        return filled(module, layer_weights(n_embd, 1.8 / math.sqrt(n_embd), bias), dtype)

    def output(*shape, n_positions, bias=True):
        return made(shape[-1], n_positions, bias)(numbers(*shape, start=0.2)).double()

    def of_like_layers(*shape):
        alike = like_layer_weights(shape[-1], 1.8 / math.sqrt(shape[-1]))
        module = filled(problem.CausalAttention(shape[-1], 8).eval(), alike)
        return module(numbers(*shape, start=0.2)).double()

    def between(*shape, n_positions, bias=True):
        """Return the output without the first and the last position.

        At these positions, some wrong masks allow no key.
        """
        return output(*shape, n_positions=n_positions, bias=bias)[:, 1:-1]

    def plain(n_embd, n_positions, query=1):
        """Return a module whose keys and values are the tokens; queries are `query` times them."""
        weights = {f"{name}.weight": torch.eye(n_embd, dtype=torch.float64) for name in LAYERS}
        weights["query.weight"] *= query
        return filled(problem.CausalAttention(n_embd, n_positions, bias=False).eval(), weights)

    def very_low():
        """Return the first output / 1e100, for a token whose score with itself is about -1e200."""
        x = double([[[1e100, 0, 0], [0, 0.5, 0], [1, 0, 0.25]]])
        return plain(3, 6, -1)(x)[:, :1].double() / 1e100

    def buffer():
        return dict(problem.CausalAttention(3, 4).named_buffers())["mask"].double()

    def no_buffer():
        """Return 0 if `mask` is a buffer, 1 if it is another attribute, 2 if it does not exist."""
        module = problem.CausalAttention(3, 4)
        if "mask" in dict(module.named_buffers()):
            return 0
        return 1 if hasattr(module, "mask") else 2

    def how_refused(length, training=True):
        """Return a code for the outcome of a call with this length: the type of error, or none."""
        module = made(3, 4).train(training)
        try:
            output = module(numbers(2, length, 3))
        except Exception as error:
            if type(error) is RuntimeError and "tensor" in str(error):
                return 3  # raised by PyTorch
            return {ValueError: 1, AssertionError: 2}.get(type(error), 4)
        return 0 if output.shape[1] == length else 5

    def half_precision():
        return made(dtype=torch.bfloat16)(numbers(2, 5, 3).bfloat16()).dtype == torch.bfloat16

    def digits_lost(width):
        module, nothing = plain(width, 3), [0.0] * (width - 2)
        rows = [[1.0, 1.0, *nothing], [0.7, 1.0, *nothing]]
        mixed, total = module(double([rows, rows]))[0, 1, :2].tolist()
        first = 1 / (1 + math.exp((0.7 * 0.7 - 0.7) / math.sqrt(width)))
        return 1e-12 < abs(mixed / total - first - 0.7 * (1 - first)) < 1e-5

    of_all = Part(
        main={
            "all 3": lambda: output(3, 3, 3, n_positions=3)[:, 1:],
            "longest": lambda: between(3, 5, 4, n_positions=5),
            "T = C": lambda: between(2, 5, 5, n_positions=8),
            "no bias": lambda: between(2, 6, 3, n_positions=7, bias=False),
        },
        edges=edges.of_module(
            lambda *dtype: made(3, 6, True, *dtype),
            numbers(2, 5, 3),
            other=numbers(2, 3, 3),
            weights=(*(f"{name}.weight" for name in LAYERS), "value.bias"),
            large=100,
        )
        | {
            "no buffer": no_buffer,
            "the buffer": buffer,
            "trains the mask": lambda: "mask" in parameters(problem.CausalAttention(3, 4)),
            "one sequence": lambda: output(1, 4, 3, n_positions=6),
            "wider than the mask": lambda: output(2, 3, 5, n_positions=4),
            "more sequences than positions": lambda: output(6, 3, 2, n_positions=4),
            "one too many": lambda: how_refused(5),
            "one too many, in eval": lambda: how_refused(5, training=False),
            "scores at -1e200": very_low,
            "half precision": half_precision,
            "digits are lost": lambda: digits_lost(2),
            "digits are lost, width 4": lambda: digits_lost(4),
            "a token of 0": lambda: made()(numbers(2, 4, 3) * double([1, 0, 1, 1])[:, None]),
            "an earlier output changes": lambda: edges.overwrites(
                made(), numbers(2, 5, 3), numbers(2, 5, 3, start=0.5)
            ),
            "training answers by chance": lambda: edges.varies(
                lambda: made(3, 8).train()(numbers(5, 8, 3))
            ),
        },
    )
    like_layers = {
        "2x5x3": lambda: of_like_layers(2, 5, 3)[:, 1:-1],
        "4x4x4": lambda: of_like_layers(4, 4, 4)[:, 1:-1],
        "1x6x3": lambda: of_like_layers(1, 6, 3)[:, 1:-1],
    }
    return {
        "CausalAttention": of_all,
        "CausalAttention: like layers": Part(main=like_layers),
    }
