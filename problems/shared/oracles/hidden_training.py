"""Judge results in the hidden tests of problem 10."""

from grader.run.compare import require
from shared.oracles import training


def clipping_limit(gradients, part, rng):
    """Return a clipping limit: `part` times the norm of the gradients, rounded to four digits."""
    return float(f"{part * training.norm(gradients):.4g}")


def drop_activations(losses, call, whole):
    """Require that dropout changes the losses, and that equal seeds give equal losses.

    Args:
        losses: four losses, for two seeds A and B in the order A, B, A, B.
        call: the call, as text.
        whole: the loss without dropout.
    """
    first, other, *again = (float(loss) for loss in losses)
    message = f"The loss is {first:.4g}, as without dropout. Is the model in training mode?"
    require(abs(first - whole) > 1e-4 * whole, f"{call}\n{message}")
    require([first, other] == again, f"{call}\nWith the same seed, the loss is different.")
    message = f"{call}\nWith another seed, the loss is the same. Does your code set a seed?"
    require(first != other, message)


def is_mean_loss(loss_and_weights, call, batches):
    """Require that a loss is the mean over all tokens of the batches.

    `loss_and_weights` contains the loss and the weights of the student's model.
    """
    loss, weights = loss_and_weights
    training.is_near(loss, call, training.mean_loss(weights, batches), share=1e-6)
