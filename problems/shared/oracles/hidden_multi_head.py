"""Judges for the hidden tests of problem 05."""

from grader.run.compare import require


def half_is_dropped(output, call):
    """Require that about half of an output is 0."""
    share = (output == 0).double().mean().item()
    message = f"{call}\nAbout half of the output should be 0, but {share:.0%} is."
    require(0.2 < share < 0.8, message)
