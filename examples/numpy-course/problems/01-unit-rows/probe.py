"""Define the questions of problem 01: calls whose answers identify mistakes."""

import numpy as np

from grader.diagnose.probe import Part


def numbers(*shape):
    """Return fixed, irregular numbers."""
    steps = np.arange(np.prod(shape), dtype=np.float64)
    return 1.5 * np.sin(0.37 * steps**2 + 1.7 * steps + 0.4).reshape(shape)


def probe(problem):
    """Return the questions about the function."""

    def asked(*shape, size=1.0, dtype=np.float64):
        return problem.unit_rows((size * numbers(*shape)).astype(dtype))

    def changes():
        x = numbers(3, 4)
        problem.unit_rows(x)
        return not np.array_equal(x, numbers(3, 4))

    return {
        "unit_rows": Part(
            main={
                "square": lambda: asked(3, 3),
                "2-D": lambda: asked(4, 3),
                "3-D": lambda: asked(2, 3, 4),
                "1-D": lambda: asked(5),
            },
            edges={
                "large": lambda: asked(3, 3, size=1e200),
                "small": lambda: asked(3, 3, size=1e-200),
                "somewhat small": lambda: asked(3, 3, size=1e-7),
                "zeros": lambda: asked(3, 3, size=0.0),
                "float32": lambda: asked(3, 3, dtype=np.float32),
                "changes x": changes,
            },
        )
    }
