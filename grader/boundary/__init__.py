"""The boundary between tests and student code: each side in a process of its own.

    from grader.boundary.boundary import Boundary

    with Boundary() as boundary:
        problem = boundary.open(source, forbidden=("gelu",))
        problem.activation(x)

See docs/isolation.md for what it protects against, and what it doesn't; README.md beside this file
says by which means, how it works, and which side runs which files. Nothing is imported here: a
worker loads this file, too, and must not load the trusted half.
"""
