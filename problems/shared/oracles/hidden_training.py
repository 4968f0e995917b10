"""Judges for the hidden tests of problem 10."""

from grader.run.compare import require
from shared.oracles import training


def limit(gradients, part, rng):
    """Return a limit for clipping: about this part of the norm of the gradients, with four
    digits.
    """
    return float(f"{part * training.norm(gradients):.4g}")


def drop_activations(losses, call, whole):
    """Require losses of models that drop activations. Two seeds were set, each of them twice.

    Args:
        losses: the losses after the first seed, the second one, and both again.
        call: the call, as text.
        whole: the loss without dropout.
    """
    first, other, *again = (float(loss) for loss in losses)
    message = f"The loss is {first:.4g}, as without dropout. Is the model in training mode?"
    require(abs(first - whole) > 1e-4 * whole, f"{call}\n{message}")
    require([first, other] == again, f"{call}\nAfter the same seed it gave different losses.")
    require(first != other, f"{call}\nAfter another seed the loss is the same. Is a seed set?")


def is_mean_loss(found, call, batches):
    """Require the loss of the model's weights over all tokens of some batches."""
    loss, weights = found
    training.is_near(loss, call, training.mean_loss(weights, batches), share=1e-6)
