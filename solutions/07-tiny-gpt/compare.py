"""The content of `grader compare 07`, which requires a correct file."""

import torch

from shared.probe_weights import filled, gpt_weights

STYLES = {
    "nanogpt": "Choose it if others will read the code: everyone in the field knows this "
    "layout, and the loop in bigram_loss shows what it counts.",
    "terse": "Choose it in your own script, for short texts: unfold and bincount take one line "
    "each, but p[a] has a row of numbers for every token and is the largest tensor.",
}

CALLS = (
    "get_batch and bigram_loss on 500 tokens, and GPT(65 tokens, 2 layers of width 32) on a batch"
)


def cost(problem):
    """Return the function whose cost is measured."""
    sizes = {"vocab_size": 65, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4}
    model = problem.GPT(problem.GPTConfig(**sizes))
    text = torch.arange(500) * 37 % 65

    def call():
        problem.bigram_loss(text, 65)
        model(*problem.get_batch(text, 32, 2))

    return call


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "A model with 65 tokens is not trained yet. About how large is its loss, and why?",
            lambda: at_the_start(problem),
        ),
        (
            "A model of one layer reads 3 1 4 and then 1 3 4. Are its logits at the last token "
            "the same? And if all position embeddings are 0?",
            lambda: without_positions(problem),
        ),
    ]


def at_the_start(problem):
    """Return the answer to the first question."""
    torch.default_generator.manual_seed(0)
    sizes = {"vocab_size": 65, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    model = problem.GPT(problem.GPTConfig(**sizes)).eval()
    tokens = torch.arange(65 * 64) * 37 % 65
    with torch.no_grad():
        loss = model(tokens.reshape(-1, 64), (tokens + 11).reshape(-1, 64) % 65)[1]
    return (
        f"{loss.item():.1f}, and ln 65 is 4.17: all tokens have about the same probability, 1/65, "
        "and the loss is -ln(1/65). If the first loss is far above ln 65, the initial weights are "
        "too large."
    )


def without_positions(problem):
    """Return the answer to the second question."""
    apart = {}
    for has_positions in (True, False):
        sizes = {"vocab_size": 7, "n_positions": 5, "n_embd": 8, "n_layer": 1, "n_head": 2}
        weights = gpt_weights(sizes)
        if not has_positions:
            weights["transformer.wpe.weight"] = weights["transformer.wpe.weight"] * 0
        model = filled(problem.GPT(problem.GPTConfig(**sizes)), weights).eval()
        one, other = (model(torch.tensor([ids]))[0][0, -1] for ids in ([3, 1, 4], [1, 3, 4]))
        apart[has_positions] = (one - other).abs().max().item()
    return (
        f"With position embeddings they differ by up to {apart[True]:.3f}; without, by "
        f"{apart[False]:.3f}. The last token attends to all three tokens. Without positions, these "
        "are a set. A second layer could use the mask to find the order, because token 1 does not "
        "attend to token 2."
    )
