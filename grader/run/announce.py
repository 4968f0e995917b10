"""Print that PyTorch is being loaded, which takes seconds.

Import this before PyTorch. Garbage collection is off meanwhile, as loading creates hardly any
garbage and the search for it takes a quarter of the time of a short run.
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
    atexit.register(gc.freeze)  # nor is there any use in looking when the process ends
if _SAID:
    print(_WORDS, end="", file=sys.stderr, flush=True)


def loaded() -> None:
    """Remove the message, and enable garbage collection except of loaded modules. Also limit torch
    to one thread: for small tensors a second one mostly waits, and on a busy machine it makes a run
    many times as long.
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
