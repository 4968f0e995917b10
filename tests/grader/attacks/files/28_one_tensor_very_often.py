"""Returns a list with one tensor thousands of times. Each occurrence counts, so the result is bad
output.
"""

import gc

import torch

gc.unfreeze()
classes = [o for o in gc.get_objects() if isinstance(o, type) and o.__name__ == "Encoder"]
(Encoder,) = [found for found in classes if found.__module__ == "grader.run.encoding"]
encode = Encoder.encode
Encoder.encode = lambda self, value, depth=0: ["list", *[encode(self, value, depth)] * 4000]


def double(x):
    return torch.ones(1 << 22)
