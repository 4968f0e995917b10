"""Picture for problem 05: four heads that look at one sentence in four ways.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the weights of
your layer. If they are wrong, it draws the expected ones below, and frames the cells that differ.
To choose a sentence: `uv run python explore.py "we see what we look for"`. Without a display, or
with `--save`, it writes the picture to pictures/my_heads.png.
"""

# %% What can a head attend to? Here its weights are set by hand; a trained model learns them.
import grader.student.script  # noqa: F401  (so that no file in this folder hides a module)

# isort: split
import matplotlib.pyplot as plt
import torch

from shared import expected, pictures

plt.style.use(pictures.STYLE)
words = pictures.words("the cat sat on the mat")
T, n_head = len(words), 4
head_dim = T
n_embd = n_head * head_dim

kinds = list(dict.fromkeys(words))  # the different words
K = len(kinds)
place = torch.eye(T)  # (T, T): one-hot positions of the words
kind = torch.eye(K)[[kinds.index(word) for word in words]]  # (T, K): one-hot indices in kinds
x = torch.cat([place, kind, torch.zeros(T, n_embd - T - K)], dim=-1)  # (T, C)

nothing = torch.zeros(head_dim, n_embd)
my_place, previous_place, my_word, third_word = (nothing.clone() for _ in range(4))
my_place[:, :T] = torch.eye(T)
previous_place[:-1, 1:T] = torch.eye(T - 1)  # query i matches key i - 1
my_word[:K, T : T + K] = torch.eye(K)
third_word[kind[min(2, T - 1)].argmax(), T : T + K] = 1  # every query matches the key of this word

heads = {  # for each head: the weights that compute its queries, and those for its keys
    "previous word": (previous_place, my_place),
    "same word": (my_word, my_word),
    f'"{words[min(2, T - 1)]}"': (third_word, my_word),
    "all alike": (nothing, my_word),
}
queries = torch.cat([10 * query for query, _ in heads.values()])  # 10 makes one weight large
keys = torch.cat([key for _, key in heads.values()])
values = my_place.repeat(n_head, 1)  # one-hot values: a head's output is its weights


def weights_of_heads(module):
    """Return the attention weights, (n_head, T, T), of the layer that a module defines."""
    layer = module.MultiHeadAttention(n_embd=n_embd, n_head=n_head, bias=False)
    layer.load_state_dict(
        {"c_attn.weight": torch.cat([queries, keys, values]), "c_proj.weight": torch.eye(n_embd)},
        strict=False,
    )
    output = layer(x[None])[0].detach()  # (T, C): the outputs of the heads, side by side
    return torch.stack(output.split(head_dim, dim=-1))


right = weights_of_heads(expected)
yours = pictures.yours("05-multi-head-attention", "MultiHeadAttention", weights_of_heads, right)

# %% What do the heads look at?
figure = plt.figure(figsize=(8, 2.7))
panels = [
    pictures.Panel(f"head {head}: {target}", right[head], None if yours is None else yours[head])
    for head, target in enumerate(heads)
]
pictures.draw_panels(figure, panels, words, with_numbers=False)
pictures.save(figure, "heads")

# One head gives each word one set of weights. Four heads give it four sets, at about the same cost:
# for the word before, for the same word at all positions, for the third word, and for all words
# equally. In head 0, the first word has a query of 0, as no word comes before it. So its weights
# in this head are equal.
