"""The content of `grader compare 10`, which a correct file unlocks."""

import torch
from torch import nn

from grader.diagnose.numbers import numbers

STYLES = {
    "foreach": "Choose it for models of many small tensors: each step is one call for all of them, "
    "which is how torch.optim does it by default.",
    "flat_vector": "Choose it where parameters lie on several machines: one long vector is easily "
    "cut into equal parts. It costs copies to and fro.",
}

CALLS = (
    "attention_backward with 4 heads of 32 positions, and a step of AdamW on 20 tensors of 1,000"
)


def cost(problem):
    """Return the calls to measure."""
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
    """Return the questions, each with the function that computes its answer."""
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
    """Answer the first question."""
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    found = problem.softmax_backward(weights, torch.ones_like(weights))
    largest = found.abs().max().item()
    return (
        f"0 everywhere (the largest entry is {largest:.4f}). The weights always sum to 1: if "
        "all are worth the same, no change of scores gains anything. Only differences count."
    )


def first_step(problem):
    """Answer the second question."""

    def moved(slope):
        parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        parameter.grad = torch.full_like(parameter, slope)
        problem.AdamW([parameter], lr=0.1, weight_decay=0.0).step()
        return parameter.abs().item()

    return (
        f"By {moved(0.001):.4f} and by {moved(1000.0):.4f}. The mean of the gradients is "
        "divided by the root of the mean of their squares, so their size cancels. Plain gradient "
        "descent would go 0.0001 and 100."
    )
