"""Judge results in the hidden tests of problem 05."""

from grader.run.compare import require


def half_is_dropped(output, call):
    """Require that about half of the entries of an output are 0."""
    share = (output == 0).double().mean().item()
    message = f"{call}\n{share:.0%} of the entries are 0; about half of them should be."
    require(0.2 < share < 0.8, message)
