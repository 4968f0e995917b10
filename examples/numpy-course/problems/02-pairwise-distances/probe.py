"""The questions by which a mistake in problem 02 is told. An instrument, not a lesson."""

import numpy as np

from grader.diagnose.probe import Part


def numbers(*shape, start=0.4):
    """Numbers that look random."""
    steps = np.arange(np.prod(shape), dtype=np.float64)
    return 1.5 * np.sin(0.37 * steps**2 + 1.7 * steps + start).reshape(shape)


def probe(problem):
    """Return the questions about the function."""

    def asked(n, m, d, far=0.0, dtype=np.float64):
        a, b = numbers(n, d) + far, numbers(m, d, start=2.0) + far
        return problem.pairwise_distances(a.astype(dtype), b.astype(dtype))

    def changes():
        a, b = numbers(3, 3), numbers(3, 3, start=2.0)
        problem.pairwise_distances(a, b)
        same = np.array_equal(a, numbers(3, 3)) and np.array_equal(b, numbers(3, 3, start=2.0))
        return not same

    def refuses():
        try:
            problem.pairwise_distances(numbers(3, 1), numbers(2, 4))
        except ValueError:
            return True
        return False

    return {
        "pairwise_distances": Part(
            main={
                "all of size 3": lambda: asked(3, 3, 3),
                "more of b": lambda: asked(2, 4, 3),
                "more of a": lambda: asked(5, 2, 3),
                "one coordinate": lambda: asked(3, 2, 1),
            },
            edges={
                "far from 0": lambda: asked(3, 3, 3, far=1e8),
                "itself": lambda: problem.pairwise_distances(numbers(3, 3), numbers(3, 3)),
                "float32": lambda: asked(3, 3, 3, dtype=np.float32),
                "changes arguments": changes,
                "refuses": refuses,
            },
        )
    }
