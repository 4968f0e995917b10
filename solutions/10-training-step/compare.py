"""The content of `grader compare 10`, which requires a correct file."""

import torch
from torch import nn

from grader.diagnose.numbers import numbers

STYLES = {
    "foreach": "Choose it for models with many small tensors: each operation is one call for "
    "all tensors, as in torch.optim by default.",
    "flat_vector": "Choose it if parameters are stored on several machines: one long vector is "
    "easily split into equal parts. It requires additional copies.",
}

CALLS = (
    "attention_backward with 4 heads and 32 positions; one step of AdamW with 20 × 1,000 numbers"
)


def cost(problem):
    """Return the function whose cost is measured."""
    tensors = [numbers(4, 32, 16, start=start) for start in (0.1, 0.2, 0.3, 0.4)]
    parameters = [nn.Parameter(numbers(1000, start=i)) for i in range(20)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = problem.AdamW(parameters)

    def call():
        problem.attention_backward(*tensors)
        optimizer.step()

    return call


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "The gradient with respect to all weights of a softmax is 1. What is the gradient with "
            "respect to its scores?",
            lambda: all_alike(problem),
        ),
        (
            "The learning rate is 0.1, and there is no weight decay. How far does the first step "
            "of AdamW move a parameter with the gradient 0.001? And one with the gradient 1000?",
            lambda: first_step(problem),
        ),
    ]


def all_alike(problem):
    """Return the answer to the first question."""
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    gradient = problem.softmax_backward(weights, torch.ones_like(weights))
    largest = gradient.abs().max().item()
    return (
        f"0 everywhere (the largest entry is {largest:.4f}). The weights always sum to 1. If "
        "their gradients are equal, no change of the scores changes the loss."
    )


def first_step(problem):
    """Return the answer to the second question."""

    def moved(gradient):
        parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        parameter.grad = torch.full_like(parameter, gradient)
        problem.AdamW([parameter], lr=0.1, weight_decay=0.0).step()
        return parameter.abs().item()

    return (
        f"By {moved(0.001):.4f} and by {moved(1000.0):.4f}. The mean of the gradients is "
        "divided by the root of the mean of their squares, so their size cancels. Plain gradient "
        "descent would move the parameters by 0.0001 and 100."
    )
