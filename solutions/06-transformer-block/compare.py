"""The content of `grader compare 06`, which a correct file unlocks."""

import torch

from grader.diagnose.numbers import numbers

STYLES = {
    "sequential": "Choose it where layers follow each other and nothing else happens: "
    "nn.Sequential then is the forward pass, and printing the model shows it.",
    "own_backward": "Choose it where memory in training is short: autograd keeps every step of a "
    "formula, while a hand-written backward pass keeps only the necessary ones.",
}

CALLS = "Block(32, 4) on x of shape (2, 16, 32), forward and backward"


def cost(problem):
    """Return the calls to measure."""
    module, x = problem.Block(32, 4), torch.ones(2, 16, 32)
    return lambda: module(x).sum().backward()


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "All entries of a token become ten times as large. What does LayerNorm make of that?",
            lambda: ten_times(problem),
        ),
        (
            "The weights and biases of both `c_proj` of a block become 0. What does it return?",
            lambda: silent(problem),
        ),
    ]


def ten_times(problem):
    """Answer the first question."""
    module = problem.LayerNorm(4).double()
    token = torch.tensor([2.0, -4.0, 6.0, 8.0], dtype=torch.float64)
    before, after = shown(module(token)), shown(module(10 * token))
    return (
        f"{after}, where it was {before}. Mean and standard deviation grow with the token, so "
        "the result stays: what comes later meets tokens of one size, at any depth."
    )


def silent(problem):
    """Answer the second question."""
    module, x = problem.Block(8, 2).double().eval(), numbers(1, 5, 8)
    with torch.no_grad():
        for layer in (module.attn.c_proj, module.mlp.c_proj):
            layer.weight.zero_()
            layer.bias.zero_()
        apart = (module(x) - x).abs().max().item()
    return (
        f"x itself (largest difference {apart:.4f}): attention and the MLP only add to what flows "
        "past them. A new block that adds little is close to doing nothing, so a deep model can "
        "be trained from its start, and gradients reach the first layer unchanged."
    )


def shown(row):
    """A row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
