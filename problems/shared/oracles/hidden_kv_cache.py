"""Compute expected results for the hidden tests of problem 09."""

import torch

from shared.oracles import modules


def slopes(module, x, past, upstream):
    """Return the gradients of a correct CachedAttention, by the names of inputs and parameters.

    Args:
        module: the attention.
        x: the new tokens.
        past: the keys and values of earlier tokens, or None.
        upstream: the gradients with respect to the output, the keys and the values. The last ones
            may be missing; the keys or values are then ignored.
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
    """Return the results of a correct model, and the gradients of the last logits.

    The results are the logits and `present`: the keys and values of all tokens, for each layer.

    Args:
        module: the model.
        idx: the tokens, shape (B, T).
        upstream: the gradient with respect to the last logits, for one or more positions.
    """
    logits, present = module(idx)
    learning = dict(module.named_parameters(remove_duplicate=False))
    return logits, present, modules.gradients(logits[:, -upstream.shape[1] :], learning, upstream)


def followed(prompt, token, n_new):
    """Return the prompt, followed by n_new repetitions of one token."""
    return torch.cat([prompt, torch.full((len(prompt), n_new), token)], dim=1)
