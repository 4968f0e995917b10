"""The content of `grader compare 09`, which a correct file unlocks."""

import torch

from shared.probe_weights import filled, gpt_weights

STYLES = {
    "no_mask_when_not_needed": "Choose it for speed: one new token may see everything, so no mask "
    "is made for it, and PyTorch is free to take its fastest way.",
    "static_buffers": "Choose it where shapes must not change, as for a compiled model: nothing is "
    "copied as the text grows, but every step looks at all positions.",
}

CALLS = "generate: 40 tokens after 8, by CachedGPT(65 tokens, 64 positions, 2 layers of width 32)"


def cost(problem):
    """Return the calls to measure."""
    sizes = {"vocab_size": 65, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    model = problem.CachedGPT(problem.GPTConfig(**sizes)).eval()
    return lambda: model.generate(torch.arange(8)[None], 40)


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "GPT-2 has 12 layers of width 768. Its 124 million parameters take 249 MB in half "
            "precision. How much does the cache take for 1,024 tokens, and for 32 texts at once?",
            lambda: memory(problem),
        ),
        (
            "The cache is full, so you drop the oldest token's keys and values from it and go on. "
            "Are the next logits those that the model gives for the shortened text?",
            lambda: slid(problem),
        ),
    ]


def memory(problem):
    """Answer the first question."""
    one, many = (problem.kv_cache_bytes(12, 768, 1024, batch_size=n) / 1e6 for n in (1, 32))
    return (
        f"{one:.1f} MB, and {many:,.0f} MB for 32. With many texts it is the cache that fills "
        "the memory, not the model. So newer models share keys and values among several heads."
    )


def slid(problem):
    """Answer the second question."""
    sizes = {"vocab_size": 7, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
    model = filled(problem.CachedGPT(problem.GPTConfig(**sizes)), gpt_weights(sizes)).eval()
    text, new = torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[2]])
    with torch.no_grad():
        _, past = model(text)
        whole = apart(model(new, past)[0], model(torch.cat([text, new], 1))[0])
        cut = [(keys[:, :, 1:], values[:, :, 1:]) for keys, values in past]
        short = apart(model(new, cut)[0], model(torch.cat([text[:, 1:], new], 1))[0])
    return (
        f"No: they differ by up to {short:.3f} (with the whole cache by {whole:.3f}). The rest "
        "was computed with each token one position further on, and from tokens that had seen "
        "the dropped one. That is why this model refuses a text that is too long."
    )


def apart(one, other):
    """How far the logits of the last tokens differ."""
    return (one[:, -1] - other[:, -1]).abs().max().item()
