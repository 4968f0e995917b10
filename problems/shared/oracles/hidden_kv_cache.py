"""Right answers for the hidden tests of problem 09."""

import torch

from shared.oracles import modules


def slopes(module, x, past, upstream):
    """Return the gradients of the results of a correct attention for new tokens and a past, by
    name.

    Args:
        module: the attention.
        x: the new tokens.
        past: the keys and values before them, or None.
        upstream: the factors of the entries of the output, the keys and the values. Results without
            factors are ignored.
    """
    names = ("x", "the past's keys", "the past's values")
    inputs = dict(zip(names, (x, *(past or ())), strict=False))
    leaves = {name: each.clone().requires_grad_() for name, each in inputs.items()}
    x, *past = leaves.values()
    output, present = module(x, tuple(past) or None)
    results = zip((output, *present), upstream, strict=False)
    total = sum((each * up).sum() for each, up in results)
    learning = {name: each for name, each in module.named_parameters() if each.requires_grad}
    return modules.gradients(total, leaves | learning, torch.tensor(1.0))


def read(module, idx, upstream):
    """Return the logits and the present of a correct model for a text, and gradients by name.

    They are the gradients of the last logits, which are multiplied by `upstream`.
    """
    logits, present = module(idx)
    learning = dict(module.named_parameters(remove_duplicate=False))
    return logits, present, modules.gradients(logits[:, -upstream.shape[1] :], learning, upstream)


def followed(prompt, token, n_new):
    """Return a text followed by n_new repetitions of one token."""
    return torch.cat([prompt, torch.full((len(prompt), n_new), token)], dim=1)
