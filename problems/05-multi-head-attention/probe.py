"""Define the questions of problem 05: calls whose answers identify mistakes."""

import contextlib
import functools
import itertools
import math

import torch

from grader.diagnose import edges
from grader.diagnose.answers import attempt
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters, set_weights
from shared.oracles.attention import multi_head_by_hand
from shared.probe_weights import attention_weights, filled
from shared.visible_dropout import COPIES, identity_weights
from shared.worked_example import loops_over_pairs


def probe(problem):
    """Return the questions about each function and about several aspects of the class."""
    return {
        "split_heads": about_splitting(problem),
        "merge_heads": about_merging(problem),
        **about_attention(problem),
        "MultiHeadAttention: layers": about_layers(problem),
        "MultiHeadAttention: defaults": about_defaults(problem),
        "MultiHeadAttention: number of heads": about_number_of_heads(problem),
        "MultiHeadAttention: dropout": about_dropout(problem),
    }


def about_splitting(problem):
    """Return questions about split_heads."""

    def split(*shape, n_head):
        return problem.split_heads(numbers(*shape), n_head)

    return Part(
        main={
            "all of size 2": lambda: split(2, 2, 4, n_head=2),
            "4 heads": lambda: split(2, 3, 20, n_head=4),
            "2 heads": lambda: split(3, 5, 6, n_head=2),
        },
        edges=edges.of_function(lambda x: problem.split_heads(x, 3), {"x": numbers(2, 4, 6)})
        | {
            "1 head": lambda: split(2, 4, 3, n_head=1),
            "1 position": lambda: split(2, 1, 6, n_head=3),
        },
    )


def about_merging(problem):
    """Return questions about merge_heads."""

    def merge(*shape):
        return problem.merge_heads(numbers(*shape))

    return Part(
        main={
            "all of size 2": lambda: merge(2, 2, 2, 2),
            "4 heads": lambda: merge(2, 4, 3, 5),
            "2 heads": lambda: merge(3, 2, 5, 3),
            "3 heads of one sequence": lambda: merge(1, 3, 4, 2),
        },
        edges=edges.of_function(lambda x: problem.merge_heads(x), {"x": numbers(2, 3, 4, 2)})
        | {
            "1 position": lambda: merge(2, 3, 1, 2),
            "1 head of 1 sequence": lambda: merge(1, 1, 4, 3),
        },
    )


def made(problem, weights, n_head, *, dropout=0.0, causal=False, dtype=torch.float64):
    """Return the student's MultiHeadAttention with these weights."""
    n_embd, bias = len(weights["c_proj.weight"]), "c_proj.bias" in weights
    options = {"dropout": dropout, "causal": causal, "bias": bias}
    return filled(problem.MultiHeadAttention(n_embd, n_head, **options), weights, dtype)


LEAVES = ("c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias")


def about_attention(problem):
    """Return questions about a layer's output without dropout, in three parts.

    In the second part, the three thirds of c_attn are equal, so swapping queries, keys and values
    has no effect. In the third part there is only one token. Its attention weight is 1, so a wrong
    score has no effect. Mistakes without an effect cannot hide other mistakes.
    """

    def output(*shape, n_head, causal=False, bias=True, dtype=torch.float64):
        weights = attention_weights(shape[-1], bias)
        module = made(problem, weights, n_head, causal=causal, dtype=dtype).eval()
        return module(numbers(*shape, start=0.5).to(dtype))

    def of_like_thirds(*shape, n_head, causal=False):
        weights = attention_weights(shape[-1])
        for name in ("c_attn.weight", "c_attn.bias"):
            weights[name] = torch.cat([weights[name].chunk(3)[1]] * 3)
        return made(problem, weights, n_head, causal=causal).eval()(numbers(*shape, start=0.5))

    def in_training():
        """Return a causal layer's output in training mode.

        If it is random, return the output in evaluation mode.
        """
        module = made(problem, attention_weights(9), 3, causal=True).train()
        x = numbers(3, 3, 9, start=0.5)
        first, second = module(x.clone()), module(x.clone())
        return first if torch.allclose(first, second, equal_nan=True) else module.eval()(x)

    def extreme(case):
        weights, x, dtype = identity_weights(6), numbers(1, 4, 6), torch.float64
        query, key = torch.tensor([0, 3]), torch.tensor([6, 9])
        weights["c_attn.weight"][12, 0] = 0  # keep large entries of x out of the values
        if case == "far below":
            # The last score is the largest, even if a mask adds the lowest number of float32.
            dtype = torch.float32
            weights["c_attn.bias"][query], weights["c_attn.bias"][key] = 1.8e19, -1.7e19
            weights["c_attn.weight"][key, 0], x[:, -1, 0] = 1e17, 340
        elif case == "future far above":
            weights["c_attn.bias"][query], weights["c_attn.weight"][key, 0] = 1, 1
            x[:, -1, 0] = 1e30
        else:
            weights["c_attn.weight"][query, 0], weights["c_attn.bias"][key] = 1, 1
            x[0, :, 0] = torch.tensor([4000.0, -4000, 0, 2000])
        return made(problem, weights, 2, causal=True, dtype=dtype).eval()(x.to(dtype))

    def token_of_0():
        return ordinary()(x * torch.tensor([1.0, 0, 1, 1])[:, None])

    def small_weights_are_0():
        """Return whether a value of 1e6 with the attention weight 4e-8 has no effect."""
        weights, x = identity_weights(2), torch.tensor([[[0.0, 0], [-24, 1e6]]])
        weights["c_attn.bias"][0] = weights["c_attn.weight"][2, 0] = 1
        return made(problem, weights, 1).eval()(x.double())[0, 0, 1] == 0

    def digits_lost(n_head):
        weights, x = attention_weights(6), numbers(2, 4, 6, start=0.5)
        right = multi_head_by_hand(x, weights, n_head)
        return edges.loses_digits(output(2, 4, 6, n_head=n_head), right)

    def steps_of_queries_lost():
        weights, x = attention_weights(6), numbers(2, 4, 6, start=0.5)

        def output_of(bias):
            given = weights | {"c_attn.bias": torch.cat([bias, weights["c_attn.bias"][6:]])}
            return made(problem, given, 2).eval()(x.clone())

        return edges.loses_steps(output_of, weights["c_attn.bias"][:6])

    def ordinary(dtype=torch.float64):
        return made(problem, attention_weights(6), 2, causal=True, dtype=dtype).eval()

    @torch.no_grad()
    def long():
        """Return whether the first outputs of a sequence of 1030 tokens ignore later tokens.

        Return True for code that loops over pairs of positions, because it is too slow for this.
        """
        x, weights = numbers(1, 1030, 4).float(), attention_weights(4)
        module = made(problem, weights, 1, causal=True, dtype=torch.float32).eval()
        if loops_over_pairs(lambda length: module(x[:, :length].clone())):
            return True
        return torch.allclose(module(x.clone())[:, :4], module(x[:, :4].clone()), atol=1e-6)

    def only(other):
        """Return whether an ordinary call fails, but `other` returns finite numbers."""
        try:
            output(2, 4, 6, n_head=2)
        except NotImplementedError:
            raise
        except Exception:
            return other().isfinite().all()
        return False

    x = numbers(2, 4, 6, start=0.5)
    of_all = Part(
        main={
            "threes, causal": in_training,
            "5 heads": lambda: output(2, 4, 15, n_head=5),
            "5 heads, causal": lambda: output(2, 4, 15, n_head=5, causal=True),
            "1 head, causal": lambda: output(2, 5, 7, n_head=1, causal=True),
            "no bias": lambda: output(2, 5, 10, n_head=2, bias=False),
            "kind": lambda: edges.kind(ordinary()(x.clone())),
        },
        edges=edges.of_module(ordinary, x, other=numbers(2, 3, 6), weights=LEAVES)
        | {
            "only heads of width 64": lambda: only(lambda: output(1, 2, 64, n_head=1)),
            "only float32": lambda: only(lambda: output(2, 4, 6, n_head=2, dtype=torch.float32)),
            "digits lost": lambda: digits_lost(2),
            "digits lost, heads of width 1": lambda: digits_lost(6),
            "steps of queries lost": steps_of_queries_lost,
            "far below": lambda: extreme("far below"),
            "future far above": lambda: extreme("future far above"),
            "far apart, causal": lambda: extreme("far apart"),
            "a token of 0": token_of_0,
            "small weights are 0": small_weights_are_0,
            "an earlier output changes": lambda: edges.overwrites(ordinary(), x.clone(), x.flip(1)),
            "long": long,
        },
    )
    like_thirds = {
        "2 heads": lambda: of_like_thirds(2, 4, 6, n_head=2),
        "causal": lambda: of_like_thirds(3, 5, 8, n_head=2, causal=True),
    }
    one_token = {
        "2 heads": lambda: output(2, 1, 6, n_head=2),
        "1 head": lambda: output(1, 1, 4, n_head=1),
        "no bias": lambda: output(3, 1, 8, n_head=4, bias=False),
    }
    return {
        "MultiHeadAttention": of_all,
        "MultiHeadAttention: like thirds": Part(main=like_thirds),
        "MultiHeadAttention: one token": Part(main=one_token),
    }


def about_layers(problem):
    """Return questions about the parameters of a layer."""

    def layers(bias):
        module = problem.MultiHeadAttention(12, 3, bias=bias)
        return torch.tensor(edges.linear_sizes(module, "c_attn", "c_proj"))

    def sizes():
        module = problem.MultiHeadAttention(12, 3)
        found = [getattr(module, name, -1) for name in ("n_embd", "n_head", "head_dim")]
        return torch.tensor([[float(size), float(type(size) is int)] for size in found])

    def dropouts(rate):
        return torch.tensor(rates(problem.MultiHeadAttention(12, 3, dropout=rate)))

    return Part(
        main={
            "with bias": lambda: layers(True),
            "without bias": lambda: layers(False),
            "sizes": sizes,
            "dropout 0.25": lambda: dropouts(0.25),
        },
        edges={
            "starts alike": lambda: edges.starts_alike(lambda: problem.MultiHeadAttention(6, 2)),
        },
    )


def rates(module):
    """Return the rates of attn_dropout and resid_dropout."""
    return edges.dropout_rates(module, "attn_dropout", "resid_dropout")


def sees_all(problem, module):
    """Return whether a layer of width 6 with 2 heads attends to later tokens.

    Its output is compared with the outputs of layers with causal=False and causal=True.
    """
    weights, x = attention_weights(6), numbers(2, 4, 6)
    set_weights(module.double(), weights)
    layers = [module, *(made(problem, weights, 2, causal=each) for each in (False, True))]
    output, wanted, other = (layer.eval()(x.clone()) for layer in layers)
    return torch.equal(output, wanted) or not torch.equal(output, other)


def about_defaults(problem):
    """Return questions about arguments by position, and about defaults."""
    default = functools.cache(lambda: problem.MultiHeadAttention())

    def biases(module):
        return torch.tensor([f"{name}.bias" in parameters(module) for name in ("c_attn", "c_proj")])

    def by_position():
        module = problem.MultiHeadAttention(6, 2, 0.25, True, False)
        return torch.tensor([*rates(module), *biases(module).tolist()])

    def sees():
        """Return whether tokens attend to later ones by default, or True if the code fails."""
        answer = attempt(lambda: sees_all(problem, problem.MultiHeadAttention(6, 2)))
        return not answer.is_value or answer.numbers[0] == 1

    return Part(
        main={
            "width": lambda: default().n_embd,
            "heads": lambda: default().n_head,
            "dropout": lambda: torch.tensor(rates(default())),
            "biases": lambda: biases(default()),
            "sees": sees,
            "by position": by_position,
        },
    )


def about_number_of_heads(problem):
    """Return questions about numbers of heads that are invalid or valid."""

    def outcome(n_head):
        """Return the result of `edges.refusal` for this many heads. Ignore divisions by 0."""

        def make():
            with contextlib.suppress(ZeroDivisionError):
                problem.MultiHeadAttention(12, n_head)

        return edges.refusal(make)

    def outcomes(*numbers_of_heads):
        return torch.tensor([outcome(n_head) for n_head in numbers_of_heads])

    def in_forward():
        """Return whether the constructor or forward raises ValueError for 5 heads in width 12."""
        try:
            problem.MultiHeadAttention(12, 5)(torch.ones(1, 2, 12))
        except ValueError:
            return True
        return False

    return Part(
        main={
            "zero": lambda: outcomes(0),
            "negative": lambda: outcomes(-1, -4),
            "negative and no divisor": lambda: outcomes(-5),
            "no divisor": lambda: outcomes(5, 8),
            "more than the width": lambda: outcomes(24),
            "possible": lambda: outcomes(1, 2, 3, 4, 6, 12),
            "in forward": lambda: attempt(in_forward).numbers[:1] == (1.0,),
        },
    )


HEADS = LENGTH = 3
WIDTH = COPIES * LENGTH
RATE = 0.25


def showing(problem, q, k, v, *, dropout, q_and_k=0.0, added=0.0):
    """Return a layer with the given matrices, and a sequence of unit vectors.

    Token t is the t-th unit vector. So its query, key and value are column t of the matrices.

    Args:
        problem: the student's code.
        q: for each head, the matrix that maps a token to its query.
        k: the matrices for the keys.
        v: the matrices for the values.
        dropout: the dropout rate.
        q_and_k: a number that is added to all queries and keys.
        added: a number that c_proj adds to each entry of the output.
    """
    n_embd = HEADS * WIDTH
    weights = identity_weights(n_embd)
    weights["c_attn.weight"] = torch.cat([part.reshape(n_embd, n_embd) for part in (q, k, v)])
    weights["c_attn.bias"][: 2 * n_embd] = q_and_k
    weights["c_proj.bias"] += added
    module = made(problem, weights, HEADS, dropout=dropout)
    return module, torch.eye(LENGTH, n_embd, dtype=torch.float64)


def with_visible_dropout(problem, dropout, uneven=0.0):
    """Return a layer and a sequence for which the output shows what dropout drops.

    All scores are equal. So each attention weight is 1/3, for any scale. In COPIES entries, the
    value of token j is 1 and the values of all other tokens are 0. So in the output of query i,
    these entries equal the weight of token j, plus 1 from c_proj, and only a dropped entry is 0.
    If `uneven` is not 0, the tokens have different keys, and so different weights.
    """
    q = torch.zeros(HEADS, WIDTH, HEADS * WIDTH, dtype=torch.float64)
    k, v = q.clone(), q.clone()
    for t in range(LENGTH):
        k[:, :, t] = uneven * t
        v[:, COPIES * t : COPIES * (t + 1), t] = 1
    return showing(problem, q, k, v, dropout=dropout, q_and_k=0.6, added=1)


def is_readable(problem):
    """Return whether the output of `with_visible_dropout` shows what dropout drops.

    The output does not show it if the layer splits the heads or the output of c_attn wrongly. To
    test the splitting, query i in head h has a very large score with token i + h. So this token has
    the weight 1, for any scale.
    """
    q, k = torch.zeros(2, HEADS, WIDTH, HEADS * WIDTH, dtype=torch.float64)
    v = numbers(HEADS, WIDTH, HEADS * WIDTH)
    for h, t in itertools.product(range(HEADS), range(LENGTH)):
        q[h, t, t], k[h, (t - h) % LENGTH, t] = 1e5, 1
    rows = [torch.cat([v[h, :, (i + h) % LENGTH] for h in range(HEADS)]) for i in range(LENGTH)]
    module, sequence = showing(problem, q, k, v, dropout=0.0)
    one_found = torch.allclose(module.eval()(sequence[None])[0], torch.stack(rows))
    module, sequence = with_visible_dropout(problem, 0.0)
    return one_found and torch.allclose(module.eval()(sequence[None]), sequence.new_tensor(4 / 3))


def outputs_of_copies(module, sequence, batch, seed=None):
    """Return the outputs for `batch` copies of a sequence.

    The result has the axes (sequence, query, head, key, copy).
    """
    if seed is not None:
        torch.default_generator.manual_seed(seed)
    output = module(sequence.repeat(batch, 1, 1)).detach()
    return output.reshape(batch, LENGTH, HEADS, LENGTH, COPIES)


def values(output):
    """Return the distinct values of an output, or a tensor of 50 ones if there are more than 40."""
    finite = output[output.isfinite()]
    found = (finite.mul(1e4).round() + 0.0).unique() / 1e4
    lost = output[~output.isfinite()][:1] * math.inf
    return torch.cat([found, lost]) if len(found) <= 40 else torch.full((50,), 1.0)


def dropped(entries):
    """Return a mask of the dropped attention weights, and one of the dropped output entries."""
    return entries.amax(-1) < (1 + 1 / 6) / (1 - RATE), entries == 0


def how_often(entries):
    """Return the approximate shares of dropped weights and entries.

    Each share is given as the index of an interval, as the exact share is random.
    """
    shares = [each.double().mean() for each in dropped(entries)]
    bounds = torch.tensor([0.03, 0.17, 0.36, 0.47, 0.62, 0.9], dtype=torch.float64)
    return torch.bucketize(torch.stack(shares), bounds)


def share_alike(which, axis, among=None):
    """Return the share of pairs of neighbours along an axis that are equal.

    If there is a mask `among`, only pairs with both members in it count.
    """
    one, other = which.movedim(axis, 0)[:-1], which.movedim(axis, 0)[1:]
    if among is None:
        return (one == other).double().mean()
    return (one == other)[among.movedim(axis, 0)[:-1] & among.movedim(axis, 0)[1:]].double().mean()


def together(entries):
    """Return for each axis whether neighbouring weights, entries or values are dropped together."""
    weights, zeros = dropped(entries)
    shared = [
        share_alike(which, axis) > 0.95 and which.double().mean() > 0.1
        for which in (weights, zeros.flatten(2))
        for axis in range(which.dim())
    ]
    low = entries < 1.2 / (1 - RATE)
    return torch.tensor([*shared, *(share_alike(low, axis, ~zeros) > 0.95 for axis in (1, 4))])


def partly_together(entries):
    """Return for each axis whether neighbouring weights are often dropped together."""
    weights = dropped(entries)[0].double()
    weights = weights - weights.mean()
    by_axis = [weights.movedim(axis, 0) for axis in range(weights.dim())]
    pairs = torch.stack([(each[1:] * each[:-1]).mean() for each in by_axis])
    return pairs > 0.2 * weights.square().mean()


def shared_by_queries(entries):
    """Return whether an entry of a value is usually dropped for all queries at once.

    A query is ignored if its attention weight for this value is dropped.
    """
    low, zeros = entries < 1.2 / (1 - RATE), entries == 0
    kept = ~(low | zeros).all(-1, keepdim=True)
    return share_alike(low & ~zeros, 1, kept & ~zeros) > 0.8


def same(a, b):
    """Return whether two masks of dropped entries are equal and contain more than 30 entries."""
    return torch.equal(a, b) and int(a.sum()) > 30


def about_dropout(problem):
    """Return questions about dropout in training and in evaluation mode."""
    readable = attempt(lambda: is_readable(problem))
    if not readable.is_value or readable.numbers[0] != 1:
        return Part(main={})

    @functools.cache
    def trained():
        module, sequence = with_visible_dropout(problem, RATE)
        return torch.cat(
            [outputs_of_copies(module, sequence, batch=30, seed=seed) for seed in range(12)]
        )

    def repeated():
        """Return which pairs of calls drop the same entries.

        The pairs are calls with equal seeds, calls with different seeds, and successive calls.
        """
        module, sequence = with_visible_dropout(problem, RATE)
        first, again, other, following = (
            outputs_of_copies(module, sequence, 24, s) for s in (3, 3, 4, None)
        )
        pairs = [(first, again), (first, other), (other, following)]
        return torch.tensor([[*map(same, dropped(a), dropped(b))] for a, b in pairs])

    def own_weights():
        """Return whether the output has more distinct values than correct dropout can produce."""
        return (
            len(
                values(
                    outputs_of_copies(*with_visible_dropout(problem, RATE, 0.1), batch=30, seed=3)
                )
            )
            > 12
        )

    def back_in_training():
        """Return the distinct values in training mode after a call in evaluation mode."""
        module, sequence = with_visible_dropout(problem, RATE)
        module.eval()(sequence[None].clone())  # the code may change its argument
        return values(outputs_of_copies(module.train(), sequence, batch=30, seed=3))

    def in_evaluation():
        module, sequence = with_visible_dropout(problem, RATE)
        return values(outputs_of_copies(module.eval(), sequence, 2, seed=5))

    def gradient():
        module = made(problem, attention_weights(6), 2, dropout=RATE)
        found = edges.slope(module(numbers(2, 4, 6)), parameters(module)["c_attn.weight"])
        return found.isfinite().all()

    def of_one_sequence():
        module, sequence = with_visible_dropout(problem, RATE)
        return how_often(
            torch.cat([outputs_of_copies(module, sequence, batch=1, seed=n) for n in range(9)])
        )

    def of_one_token(n_head):
        """Return whether all entries of a head are sometimes 0 for a single token.

        They should be, as the token's only weight is sometimes dropped. Return True if the output
        is already wrong in evaluation mode.
        """
        weights, x = identity_weights(6), torch.ones(90, 1, 6, dtype=torch.float64)
        weights["c_attn.weight"] *= 2
        module = made(problem, weights, n_head, dropout=RATE)
        if not torch.allclose(module.eval()(x.clone()), 2 * x):
            return True
        torch.default_generator.manual_seed(3)
        output = module.train()(x)
        return (output.unflatten(-1, (n_head, -1)) == 0).all(-1).double().mean() > 0.1

    return Part(
        main={
            "values": lambda: values(trained()),
            "how often": lambda: how_often(trained()),
            "together": lambda: together(trained()),
            "partly together": lambda: partly_together(trained()),
            "values of all queries": lambda: shared_by_queries(trained()),
            "repeated": repeated,
            "own weights": own_weights,
            "evaluation": in_evaluation,
            "back in training": back_in_training,
        },
        edges={
            "gradient": gradient,
            "one sequence": of_one_sequence,
            "one token, one head": lambda: of_one_token(1),
            "one token, two heads": lambda: of_one_token(2),
        },
    )
