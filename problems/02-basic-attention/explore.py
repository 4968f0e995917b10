"""Picture for problem 02: who looks at whom in a small sentence.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. `--save` writes the picture.
"""

# %% Whose layer is it? Yours, as soon as it agrees with the course's on a small input.
import matplotlib.pyplot as plt
import torch

from grader.student import pictures

plt.style.use(pictures.STYLE)
SimpleAttention = pictures.own_or_course(
    pictures.folder("02-basic-attention") / "problem.py",
    "SimpleAttention",
    pictures.SimpleAttention,
    lambda layer: pictures.same_weights(layer(n_embd=4, bias=False))(
        torch.linspace(-1, 1, 24).view(2, 3, 4)
    ),
)

# %% How can one see the weights, when the layer only returns its output?
# Give each word a value with a 1 at the word's own place and 0 elsewhere. An output is then a mix
# of such values, and the amounts in the mix are the weights.
words = ["the", "cat", "chased", "the", "small", "mouse"]
meanings = torch.tensor(  # article, animal, action, size: invented for this picture
    [
        [2.0, 0.0, 0.0, 0.0],  # the
        [0.0, 2.0, 0.8, 0.0],  # cat
        [0.0, 0.7, 2.0, 0.0],  # chased
        [2.0, 0.0, 0.0, 0.0],  # the
        [0.0, 0.5, 0.0, 1.8],  # small
        [0.0, 1.8, 0.4, 1.0],  # mouse
    ]
)
x = torch.cat([meanings, torch.eye(len(words))], dim=-1)  # (T, C): meaning and place
reads_meaning = torch.diag(torch.tensor([1.0] * 4 + [0.0] * 6))
reads_place = torch.diag(torch.tensor([0.0] * 4 + [1.0] * 6))

layer = SimpleAttention(n_embd=10, bias=False)
layer.load_state_dict(
    {"query.weight": reads_meaning, "key.weight": reads_meaning, "value.weight": reads_place},
    strict=False,
)
weights = layer(x[None])[0, :, 4:].detach()  # (T, T)

# %% Who looks at whom?
figure, axes = plt.subplots(figsize=(8, 4.5))
image = pictures.heatmap(axes, weights, words, words)
pictures.write_numbers(axes, weights)
axes.set_aspect("auto")
axes.set_xlabel("key: the word that is looked at")
axes.set_ylabel("query: the word that looks")
figure.colorbar(image, label="attention weight")
pictures.save(figure, "attention_weights")

# Each row sums to 1: a word shares out its attention. "cat" looks most at itself and at "mouse",
# whose meaning is close to its own. The two "the" have equal rows, since equal words ask equal
# questions: nothing in the scores tells where a word stands.
