"""Picture for problem 05: four heads that look at one sentence in four ways.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. `--save` writes the picture.
"""

# %% Whose layer is it? Yours, as soon as it agrees with the course's on a small input.
import matplotlib.pyplot as plt
import torch

from grader.student import pictures

plt.style.use(pictures.STYLE)
MultiHeadAttention = pictures.own_or_course(
    pictures.folder("05-multi-head-attention") / "problem.py",
    "MultiHeadAttention",
    pictures.MultiHeadAttention,
    lambda layer: pictures.same_weights(layer(n_embd=4, n_head=2, bias=False))(
        torch.linspace(-1, 1, 24).view(2, 3, 4)
    ),
)

# %% What can a head ask for? Here its questions are written by hand; a trained model finds its own.
words = ["the", "cat", "sat", "on", "the", "mat"]
head_dim, n_head = 6, 4
n_embd = n_head * head_dim

place = torch.eye(6)  # (T, 6): which position a word has
kind = torch.eye(5)[[0, 1, 2, 3, 0, 4]]  # (T, 5): which word it is, "the" twice
x = torch.cat([place, kind, torch.zeros(6, n_embd - 11)], dim=-1)  # (T, C)

nothing = torch.zeros(head_dim, n_embd)
my_place, previous_place, my_word, the_verb = (nothing.clone() for _ in range(4))
my_place[:, :6] = torch.eye(6)
previous_place[:5, 1:6] = torch.eye(5)  # the word at position i asks for position i - 1
my_word[:5, 6:11] = torch.eye(5)
the_verb[2, 6:11] = 1  # whatever the word is, it asks for kind 2, "sat"

heads = {  # what a word asks for, and what a word answers to
    "previous word": (previous_place, my_place),
    "same word": (my_word, my_word),
    "the verb": (the_verb, my_word),
    "all alike": (nothing, my_word),
}
queries = torch.cat([10 * asks for asks, _ in heads.values()])  # 10: sharp, but not too sharp
keys = torch.cat([answers for _, answers in heads.values()])
values = my_place.repeat(n_head, 1)  # one-hot values: a head's output is its weights

layer = MultiHeadAttention(n_embd=n_embd, n_head=n_head, bias=False)
layer.load_state_dict(
    {"c_attn.weight": torch.cat([queries, keys, values]), "c_proj.weight": torch.eye(n_embd)},
    strict=False,
)
output = layer(x[None])[0].detach()  # (T, C): the heads' outputs side by side

# %% What do the heads look at?
figure, panels = plt.subplots(1, n_head, figsize=(8, 2.4), sharey=True)
for head, (axes, question) in enumerate(zip(panels, heads, strict=True)):
    weights = output[:, head * head_dim : (head + 1) * head_dim]  # (T, T)
    image = pictures.heatmap(axes, weights, words, words)
    axes.set_title(f"head {head + 1}: {question}", fontsize=9)
    axes.set_xlabel("key")
panels[0].set_ylabel("query")
figure.colorbar(image, ax=panels, label="attention weight", shrink=0.8)
pictures.save(figure, "heads")

# One head can only give each word one set of weights. Four heads give it four, at about the same
# cost: the word before, the same word wherever it stands, the verb, and an average of all. The
# first word has no word before it and asks head 1 for nothing, so its weights there are equal.
