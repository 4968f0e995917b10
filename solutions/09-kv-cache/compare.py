"""The content of `grader compare 09`, which requires a correct file."""

import torch

from shared.probe_weights import filled, gpt_weights

STYLES = {
    "no_mask_when_not_needed": "Choose it for speed: a single new token attends to all tokens, so "
    "it needs no mask, and PyTorch can use its fastest kernel.",
    "static_buffers": "Choose it if shapes must not change, as for a compiled model: a longer "
    "text needs no copies, but every step computes the scores of all positions.",
}

CALLS = "generate: 40 tokens after 8, by CachedGPT(65 tokens, 64 positions, 2 layers of width 32)"


def cost(problem):
    """Return the function whose cost is measured."""
    sizes = {"vocab_size": 65, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    model = problem.CachedGPT(problem.GPTConfig(**sizes)).eval()
    return lambda: model.generate(torch.arange(8)[None], 40)


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "GPT-2 has 12 layers of width 768. Its 124 million parameters take 249 MB in half "
            "precision. How large is the cache for one text of 1,024 tokens, and for 32 texts?",
            lambda: memory(problem),
        ),
        (
            "The cache is full, so you remove the keys and values of the oldest token. Are the "
            "next logits equal to the logits of the text without this token?",
            lambda: slid(problem),
        ),
    ]


def memory(problem):
    """Return the answer to the first question."""
    one, many = (problem.kv_cache_bytes(12, 768, 1024, batch_size=n) / 1e6 for n in (1, 32))
    return (
        f"{one:.1f} MB, and {many:,.0f} MB for 32. With many texts, the cache needs more "
        "memory than the model. So in newer models, several heads share keys and values."
    )


def slid(problem):
    """Return the answer to the second question."""
    sizes = {"vocab_size": 7, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
    model = filled(problem.CachedGPT(problem.GPTConfig(**sizes)), gpt_weights(sizes)).eval()
    text, new = torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[2]])
    with torch.no_grad():
        _, past = model(text)
        whole = apart(model(new, past)[0], model(torch.cat([text, new], 1))[0])
        cut = [(keys[:, :, 1:], values[:, :, 1:]) for keys, values in past]
        short = apart(model(new, cut)[0], model(torch.cat([text[:, 1:], new], 1))[0])
    return (
        f"No: they differ by up to {short:.3f} (with the whole cache by {whole:.3f}). The "
        "other keys and values were computed at positions higher by one, from tokens that had "
        "attended to the removed token. So this model rejects a text that is too long."
    )


def apart(one, other):
    """Return the largest difference between the logits of the last tokens."""
    return (one[:, -1] - other[:, -1]).abs().max().item()
