"""Judges for the hidden tests of problem 10."""

from grader.run.compare import require
from shared.oracles import training


def limit(gradients, part, rng):
    """A limit that is about this part of the norm of some gradients; it has four digits."""
    return float(f"{part * training.norm(gradients):.4g}")


def draws_anew(alike, call):
    """Losses of two calls were the same after the same seed, and others after another seed."""
    same, differ = alike
    require(same, f"{call}\nAfter the same seed it gave different losses.")
    told = "With another seed the loss is the same: nothing is dropped, or your code sets a seed."
    require(differ, f"{call}\n{told}")


def is_mean_loss(found, call, batches):
    """A loss is that of the model's weights, over all tokens of some batches."""
    loss, weights = found
    training.is_near(loss, call, training.mean_loss(weights, batches), share=1e-6)
