"""Tries to raise its limits: core dumps, memory, processes, time. The sandbox forbids it."""

import resource


def double(x):
    kinds = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
    for kind in kinds:
        try:
            low, high = resource.getrlimit(kind)
            if high != resource.RLIM_INFINITY:
                resource.setrlimit(kind, (high + 1, high + 1))
                return x + x
        except (OSError, ValueError) as error:
            refusal = error
    raise refusal
