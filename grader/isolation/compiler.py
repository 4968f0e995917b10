"""Which files may want the modules of torch's compiler.

Nothing is compiled behind the boundary. But some of torch loads these modules all the same, when it
is asked for shapes without numbers, or for a step of an optimizer; others when it is asked for
derivatives in forward mode (`torch.func.jvp`). They take nearly as long as torch itself, and hardly
any file needs them. So what a file's text mentions decides what its worker finds loaded. That
decides on nothing else: a word too many costs a second, once in a run.
"""

from __future__ import annotations

import re

_WORDS = (
    rb"meta|\boptim\b|compil|dynamo|inductor|functorch|torch\.func\b|import func\b|vmap|jvp|vjp",
    rb"jac|hess|checkpoint|\bfx\b|export|\bjit\b|script|librar|custom|dispatch|distrib|onnx|sparse",
    rb"nested|quant|sympy|\b_C\b|_refs|_prims|_decomp|\bops\b|getattr|importlib|__import__|exec\b",
    rb"flex|bias import|tensor\.parallel|fake|symbol|parametri|\bcond\b|scan|while_loop",
    rb"forward_ad|dual_level|make_dual|torch\.masked|import masked|maskedtensor|masked_tensor",
    rb"use_deterministic|\bsym_|higher_order|_check|\butils\b|sys\.modules|globals|__dict__|vars\(",
)
_MAY_WANT = re.compile(b"|".join(_WORDS), re.IGNORECASE)


def may_want_compiler(source: bytes) -> bool:
    """Return whether a student's file mentions anything for which torch could load its compiler."""
    return _MAY_WANT.search(source) is not None
