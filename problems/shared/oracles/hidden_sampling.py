"""Judge results in the hidden tests of problem 08."""

import math

import torch

from grader.run.compare import check_form, require


def keeps_about(filtered, call, logits, p):
    """Require that top-p keeps the most probable tokens, about as many as reach the sum p."""
    kept = check_form(filtered, logits, call) > -math.inf
    sums = logits.double().softmax(-1).sort(descending=True).values.cumsum(-1)
    for number, below in zip(kept.sum(-1).tolist(), (sums < p).sum(-1).tolist(), strict=True):
        message = f"{call}\nIt keeps {number} tokens of a row; it should keep about {below + 1}."
        require(abs(number - below - 1) <= 5, message)
    smallest = logits.masked_fill(~kept, math.inf).amin(-1)
    largest = logits.masked_fill(kept, -math.inf).amax(-1)
    message = f"{call}\nIt drops tokens that are more probable than some that it keeps."
    require((smallest > largest - 1e-5).all(), message)


def are_alike(drawn, call):
    """Require that two draws have equal results; `drawn` contains both."""
    require(torch.equal(*drawn), f"{call}\nIt drew other tokens.")
