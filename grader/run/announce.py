"""Print a message while PyTorch is loading, because loading takes several seconds.

Import this module before PyTorch. The module disables garbage collection until `loaded` is called.
Loading creates hardly any garbage, but collections would take a quarter of the time of a short run.
"""

from __future__ import annotations

import atexit
import gc
import sys

_WORDS = "Loading PyTorch ..."

_LOADING = "torch" not in sys.modules
_SAID = _LOADING and sys.stderr is not None and sys.stderr.isatty()

if _LOADING:
    gc.disable()
    atexit.register(gc.freeze)  # avoids a useless collection at exit
if _SAID:
    print(_WORDS, end="", file=sys.stderr, flush=True)


def loaded() -> None:
    """Remove the message, enable garbage collection, and limit torch to one thread.

    The modules loaded so far stay excluded from garbage collection. With small tensors, a second
    thread of torch mostly waits. On a busy machine, it makes a run many times slower.
    """
    import torch

    global _LOADING, _SAID
    torch.set_num_threads(1)
    if _LOADING:
        gc.freeze()
        gc.enable()
    if _SAID:
        print("\r" + " " * len(_WORDS) + "\r", end="", file=sys.stderr, flush=True)
    _LOADING = _SAID = False
