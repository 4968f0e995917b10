"""Right answers for the hidden tests of problem 09."""

import torch

from shared.oracles import modules


def slopes(module, x, past, upstream):
    """Return the gradients, by name, of a right attention's results for tokens and past.

    Args:
        module: the attention.
        x: the new tokens.
        past: the keys and values before them, or None.
        upstream: the weights of the entries of the output, the keys and the values. Results without
            weights do not count.
    """
    given = {"x": x} | dict(zip(("the past's keys", "the past's values"), past or (), strict=False))
    leaves = {name: each.clone().requires_grad_() for name, each in given.items()}
    new, *held = leaves.values()
    output, present = module(new, tuple(held) or None)
    results = zip((output, *present), upstream, strict=False)
    total = sum((each * up).sum() for each, up in results)
    learning = {name: each for name, each in module.named_parameters() if each.requires_grad}
    return modules.gradients(total, leaves | learning, torch.tensor(1.0))


def read(module, idx, upstream):
    """Return the logits and the present of a right model for a text, and gradients by name.

    These are the gradients of the last logits, as many as `upstream` has.
    """
    logits, present = module(idx)
    learning = dict(module.named_parameters(remove_duplicate=False))
    return logits, present, modules.gradients(logits[:, -upstream.shape[1] :], learning, upstream)


def followed(prompt, token, n_new):
    """Return a text continued by one token, repeated."""
    return torch.cat([prompt, torch.full((len(prompt), n_new), token)], dim=1)
