"""Compute attention by hand, in plain Python. The constants are results of the worked example."""

import math
import operator

import torch

from shared.worked_example import LAYERS, table

# The scores Q Kᵀ, with a row for each query and a column for each key.
SCORES = table("""
     1.20239352 -0.44310134  1.47906100 -0.80531921
     0.53823363  1.09303249  4.61797795  0.95396625
    -0.21525807  0.78011689  1.79464107  0.87754205
     4.11701088 -1.60160544 -0.03209583  0.24644341
""")
# The scores divided by √8, the softmax of each row, and the averages of V with these weights.
SCALED_SCORES = table("""
     0.42511031 -0.15665998  0.52292703 -0.28472334
     0.19029433  0.38644534  1.63270176  0.33727800
    -0.07610522  0.27581297  0.63450144  0.31025797
     1.45558315 -0.56625303 -0.01134759  0.08713090
""")
WEIGHTS = table("""
     0.31711856  0.17724012  0.34970588  0.15593544
     0.13147662  0.15996901  0.55626039  0.15229398
     0.16867284  0.23981773  0.34328727  0.24822216
     0.61822085  0.08185993  0.14258168  0.15733755
""")
OUTPUT = table("""
    -0.75249146 -1.23011672 -0.80977224  0.75990209 -0.20277817  0.26962756  1.23946731  0.93493436
    -0.77652092 -1.31724063 -1.03126918  1.40075263 -0.12820363  0.30998134  1.17359809  0.88325075
    -0.52552443 -1.31135110 -0.76657277  0.85102072 -0.39032334  0.23348044  0.95307130  0.96413752
    -0.84228483 -0.96535234 -0.71058386  0.14229459 -0.20809817  0.29146427  1.44269616  0.98682583
""")
# The weights and outputs with a causal mask.
CAUSAL_WEIGHTS = table("""
     1.00000000  0.00000000  0.00000000  0.00000000
     0.45111887  0.54888113  0.00000000  0.00000000
     0.22436527  0.31900079  0.45663394  0.00000000
     0.61822085  0.08185993  0.14258168  0.15733755
""")
CAUSAL_OUTPUT = table("""
    -1.20455614 -0.78141984 -0.60550966 -0.49607676  0.05358656  0.31648808  1.97222775  0.97455048
    -0.66957881 -1.64706996 -0.00307428 -0.63292153 -0.26699930  0.01312960  1.32977774  0.97090339
    -0.89506767 -1.53613058 -0.70591991  0.84266061 -0.00318276  0.20823676  1.38968769  0.86036549
    -0.84228483 -0.96535234 -0.71058386  0.14229459 -0.20809817  0.29146427  1.44269616  0.98682583
""")


def dot(a, b):
    """Return the dot product of two lists."""
    return sum(map(operator.mul, a, b))


def similarity_by_hand(queries, keys):
    """Return the dot product of every query with every key."""
    return [[dot(query, key) for key in keys] for query in queries]


def softmax_by_hand(row):
    """Return the softmax of a list: e to the power of each number, divided by their sum."""
    largest = max(row)
    powers = [math.exp(number - largest) for number in row]
    total = sum(powers)
    return [power / total for power in powers]


def average_by_hand(weights, rows):
    """Return the weighted average of some rows."""
    return [dot(weights, column) for column in zip(*rows, strict=True)]


def attend_by_hand(query, keys, values, *, scaled=True):
    """Return the output for one query: the average of the values with its attention weights."""
    scores = [dot(query, key) / (math.sqrt(len(query)) if scaled else 1) for key in keys]
    return average_by_hand(softmax_by_hand(scores), values)


def attention_by_hand(queries, keys, values, *, scaled=True, causal=False):
    """Return the output for each query. If `causal`, query i uses only the first i + 1 keys."""
    visible = range(1, len(queries) + 1) if causal else [len(keys)] * len(queries)
    return [
        attend_by_hand(query, keys[:n], values[:n], scaled=scaled)
        for query, n in zip(queries, visible, strict=True)
    ]


def linear_by_hand(rows, weights, name):
    """Apply the linear layer `name` to each row."""
    weight = weights[f"{name}.weight"].tolist()
    bias = weights[f"{name}.bias"].tolist() if f"{name}.bias" in weights else [0.0] * len(weight)
    return [[dot(w, row) + b for w, b in zip(weight, bias, strict=True)] for row in rows]


def self_attention_by_hand(x, weights, *, scaled=True, causal=False):
    """Apply attention with the layers query, key and value to x, shape (B, T, C)."""
    output = []
    for rows in x.tolist():
        queries, keys, values = (linear_by_hand(rows, weights, name) for name in LAYERS)
        output.append(attention_by_hand(queries, keys, values, scaled=scaled, causal=causal))
    return torch.tensor(output, dtype=x.dtype)


def self_attention_slopes(x, weights, upstream, **how):
    """Return the gradients of `self_attention_by_hand` by central differences.

    The gradient with respect to the bias of `key`, which is 0, is left out.

    Args:
        x: the input, shape (B, T, C).
        weights: the weights of the layers query, key and value, by name.
        upstream: the gradient with respect to the output.
        how: the options `scaled` and `causal`.
    """

    def output(at):
        return self_attention_by_hand(at["x"], at, **how)

    slopes = slopes_by_hand(output, {"x": x, **weights}, upstream)
    return {name: slope for name, slope in slopes.items() if name != "key.bias"}


def multi_head_by_hand(x, weights, n_head, causal=False, positions=None):
    """Apply attention with GPT-2's layers c_attn and c_proj to x, without dropout.

    Args:
        x: the input, shape (B, T, C).
        weights: the weights of the layers, by name.
        n_head: the number of heads.
        causal: whether a position attends only to itself and to earlier positions.
        positions: the positions whose outputs are returned; by default all.
    """
    output = []
    for rows in x.tolist():
        projected = linear_by_hand(rows, weights, "c_attn")
        heads = [
            merged_heads_by_hand(projected, i, n_head, causal)
            for i in (range(len(rows)) if positions is None else positions)
        ]
        output.append(linear_by_hand(heads, weights, "c_proj"))
    return torch.tensor(output, dtype=x.dtype)


def merged_heads_by_hand(projected, i, n_head, causal):
    """Return the concatenated outputs of all heads at position i.

    Row t of `projected` contains the query, the key and the value of position t, in this order.
    """
    n_embd = len(projected[0]) // 3
    head_dim, visible = n_embd // n_head, projected[: i + 1] if causal else projected
    merged = []
    for start in range(0, n_embd, head_dim):
        query = projected[i][start:][:head_dim]
        keys = [row[n_embd + start :][:head_dim] for row in visible]
        values = [row[2 * n_embd + start :][:head_dim] for row in visible]
        merged += attend_by_hand(query, keys, values)
    return merged


def slopes_by_hand(compute, inputs, upstream):
    """Return the gradients of (compute(inputs) * upstream).sum() by central differences.

    The gradients have about nine correct digits in float64. Use `derivative` for LayerNorm of a
    nearly constant row.

    Args:
        compute: returns the output; its argument is a dict of float64 tensors by name.
        inputs: the tensors by name. Each gradient has the dtype of its tensor.
        upstream: the gradient with respect to the output.
    """
    slopes, doubles = {}, {name: t.detach().double() for name, t in inputs.items()}
    for name, tensor in doubles.items():
        entries = tensor.view(-1)  # shares memory with `tensor`
        slope = torch.zeros_like(entries)
        for i, entry in enumerate(entries.tolist()):

            def nudged(step, entries=entries, i=i, entry=entry):
                entries[i] = entry + step
                return (compute(doubles) * upstream).sum()

            slope[i] = (nudged(1e-5) - nudged(-1e-5)) / 2e-5
            entries[i] = entry
        slopes[name] = slope.view(tensor.shape).to(inputs[name].dtype)
    return slopes
