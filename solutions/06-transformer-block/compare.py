"""The content of `grader compare 06`, which requires a correct file."""

import torch

from grader.diagnose.numbers import numbers

STYLES = {
    "sequential": "Choose it if the layers are only called one after the other: "
    "nn.Sequential is the forward pass, and printing the model shows the forward pass.",
    "own_backward": "Choose it if training needs too much memory: autograd stores the result of "
    "every step, but a hand-written backward pass stores only the necessary results.",
}

CALLS = "Block(32, 4) on x of shape (2, 16, 32), forward and backward"


def cost(problem):
    """Return the function whose cost is measured."""
    module, x = problem.Block(32, 4), torch.ones(2, 16, 32)
    return lambda: module(x).sum().backward()


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "All entries of a token are multiplied by 10. What does LayerNorm return?",
            lambda: ten_times(problem),
        ),
        (
            "The weights and biases of both `c_proj` of a block are 0. What does the block return?",
            lambda: silent(problem),
        ),
    ]


def ten_times(problem):
    """Return the answer to the first question."""
    module = problem.LayerNorm(4).double()
    token = torch.tensor([2.0, -4.0, 6.0, 8.0], dtype=torch.float64)
    before, after = shown(module(token)), shown(module(10 * token))
    return (
        f"{after}, where it was {before}. Mean and standard deviation are also multiplied by 10, "
        "so the result is the same. Later layers get tokens of the same size at any depth."
    )


def silent(problem):
    """Return the answer to the second question."""
    module, x = problem.Block(8, 2).double().eval(), numbers(1, 5, 8)
    with torch.no_grad():
        for layer in (module.attn.c_proj, module.mlp.c_proj):
            layer.weight.zero_()
            layer.bias.zero_()
        apart = (module(x) - x).abs().max().item()
    return (
        f"x itself (largest difference {apart:.4f}): attention and the MLP only add to x. A new "
        "block adds little, so it is close to the identity. So a deep model can be trained from "
        "the start, and gradients reach the first layer nearly unchanged."
    )


def shown(row):
    """Return a row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
