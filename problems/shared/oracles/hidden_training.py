"""Judges for the hidden tests of problem 10."""

from grader.run.compare import require
from shared.oracles import training


def clipping_limit(gradients, part, rng):
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
    message = f"{call}\nAfter another seed the loss is the same. Does your code set a seed?"
    require(first != other, message)


def is_mean_loss(loss_and_weights, call, batches):
    """Require the loss over all tokens of some batches, for these weights of the model."""
    loss, weights = loss_and_weights
    training.is_near(loss, call, training.mean_loss(weights, batches), share=1e-6)
