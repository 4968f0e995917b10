"""Returns a generator without end. It isn't a tensor; nobody waits for its end."""

import itertools


def double(x):
    return (n for n in itertools.count())
