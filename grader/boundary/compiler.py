"""Which files may want the modules of torch's compiler.

Nothing is compiled behind the boundary. But some of torch loads these modules all the same, when it
is asked for shapes without numbers, or for a step of an optimizer; others when it is asked for
derivatives in forward mode (`torch.func.jvp`). They take nearly as long as torch itself, and hardly
any file needs them. So what a file's text mentions decides what its worker finds loaded. That
decides on nothing else: a word too many costs a second, once in a run.
"""

from __future__ import annotations

import re

_PARTS = (
    b"meta compil dynamo inductor functorch vmap jvp vjp jac hess checkpoint export script librar "
    b"custom dispatch distrib onnx sparse nested quant sympy _refs _prims _decomp getattr "
    b"importlib __import__ flex tensor.parallel fake symbol parametri scan while_loop forward_ad "
    b"dual_level make_dual torch.masked maskedtensor masked_tensor use_deterministic higher_order "
    b"_check sys.modules globals __dict__ vars("
).split()
_WORDS = re.compile(
    rb"\b(?:optim|fx|jit|_c|ops|cond|utils|torch\.func|import func)\b"
    rb"|exec\b|bias import|import masked|\bsym_"
)


def may_want_compiler(source: bytes) -> bool:
    """Return whether a student's file mentions anything for which torch could load its compiler."""
    text = source.lower()
    return any(part in text for part in _PARTS) or _WORDS.search(text) is not None
