"""Picture for problem 09: the cost of one more token, with and without the cache.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It generates the same
text with and without the cache, counts the operations for each new token, and measures the time
for a larger model. This takes about ten seconds. Until your code is correct, the course's code
runs instead. The weights are those that you trained in problem 07, if there are any. To choose the
beginning of the text: `uv run python explore.py "class Token"`. Without a display, or with
`--save`, it writes the picture to pictures/my_cost.png.
"""

# %% The model of problem 07, if you have trained it.
import grader.student.script  # noqa: F401  (so that no file in this folder hides a module)

# isort: split
import time
from types import SimpleNamespace

import matplotlib.pyplot as plt
import torch

from grader.code.cost import counting
from grader.errors import UsageError
from shared import pictures, saved_models
from shared.oracles import torch_gpt

plt.style.use(pictures.STYLE)
torch.manual_seed(9)
threads = torch.get_num_threads()
torch.set_num_threads(1)  # so that times are those of one core
problem = "09-kv-cache"
small = {"vocab_size": 97, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}
characters, weights = "", None
try:
    kept, missing = saved_models.read(), saved_models.NONE_YET
except UsageError as error:
    kept, missing = None, str(error)
if kept:
    small, weights, characters = kept.config, kept.state, kept.characters
    print("The model is the one that you trained in problem 07.")
else:
    print(f"{missing}\nUntil then, an untrained model generates tokens.")
small = {"dropout": 0.0, "bias": True} | small
weights = weights or torch_gpt.fresh_weights(SimpleNamespace(**small))


def encode(text):
    """Return the tokens of a text, (1, T); characters without a token are omitted."""
    text = text.replace(" " * 4, "\t")
    tokens = [characters.index(c) for c in text if c in characters]
    return torch.tensor([tokens or [0]]) if characters else torch.tensor([[3, 1, 4, 1, 5]])


def decode(tokens):
    """Return the text of some tokens, or their numbers if their characters are unknown."""
    if not characters:
        return " ".join(map(str, tokens.tolist()))
    return "".join(characters[token] for token in tokens).replace("\t", " " * 4)


# %% The same text, with and without the cache.
typed = " ".join(pictures.words("def "))
prompt = encode(f"{typed} ")[:, : small["n_positions"] // 2]
n_new = small["n_positions"] - prompt.shape[1]
reader = torch_gpt.CachedReader(weights, SimpleNamespace(**small))
without = torch_gpt.greedy(reader, prompt, n_new, cached=False)


def model_of(module, sizes, weights):
    """Return the CachedGPT of a module, with these weights."""
    model = module.CachedGPT(module.GPTConfig(**sizes))
    model.load_state_dict(weights, strict=False)
    return model.eval()


def text_of(module):
    """Return the tokens that the CachedGPT of a module generates."""
    return model_of(module, small, weights).generate(prompt.clone(), n_new)


your_text = pictures.yours(problem, "CachedGPT", text_of, without)
is_yours = your_text is not None and torch.equal(your_text, without)
code = pictures.students_module(problem) if is_yours else None
print("The rest uses your code." if is_yours else "The rest uses the course's model.")
with_cache = your_text if is_yours else torch_gpt.greedy(reader, prompt, n_new, cached=True)
for how, text in [("without a cache", without), ("with the cache", with_cache)]:
    lines = "\n".join(f"  | {line}" for line in decode(text[0]).splitlines())
    print(f"{how}:\n{lines}")
print(f"Both texts are the same: {torch.equal(without, with_cache)}.")


# %% One more token, with the cache and without.
@torch.no_grad()
def both_ways(sizes, weights, length):
    """Return two functions that read the last token of a text of this length.

    The first function uses a cache of all earlier tokens, and the second reads the whole text.
    """
    idx = torch.randint(sizes["vocab_size"], (1, length))
    if is_yours:
        model = model_of(code, sizes, weights)
        _, past = model(idx[:, :-1])
        return (lambda: model(idx[:, -1:], past)), (lambda: model(idx))
    reader = torch_gpt.CachedReader(weights, SimpleNamespace(**sizes))
    reader.read(idx[:, :-1])

    def step():
        reader.length = length - 1
        return reader.step(idx[:, -1:])

    return step, (lambda: reader.whole(idx))


@torch.no_grad()
def operations(run):
    """Return the number of operations of a call."""
    with counting() as cost:
        run()
    return cost.operations


@torch.no_grad()
def milliseconds(run, times=5):
    """Return the CPU time of a call: the shortest of several calls."""
    run()
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return 1000 * min(taken)


lengths = range(2, small["n_positions"] + 1, 2)
counted = [[operations(run) for run in both_ways(small, weights, n)] for n in lengths]
print(
    f"\nOperations for token {lengths[-1]}: {counted[-1][0]:,} with the cache, {counted[-1][1]:,} "
    f"without: {counted[-1][1] / counted[-1][0]:.0f} times as many."
)

# %% The time, for a larger model.
large = small | {"n_positions": 1024, "n_embd": 128, "n_layer": 4}
large_weights = torch_gpt.fresh_weights(SimpleNamespace(**large))
large_lengths = [64, 128, 256, 512, 768, 1024]
print("\nMilliseconds for one more token in a model with n_embd = 128 and 4 layers:")
print("  length   with the cache   without")
timed = []
for n in large_lengths:
    timed.append([milliseconds(run) for run in both_ways(large, large_weights, n)])
    print(f"  {n:6}   {timed[-1][0]:14.1f}   {timed[-1][1]:7.1f}")

# %% Draw the operations and the times.
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
for axes, where, numbers, title, unit in [
    (left, lengths, counted, f"{small['n_embd']} wide, {small['n_layer']} layers", "operations"),
    (right, large_lengths, timed, f"{large['n_embd']} wide, {large['n_layer']} layers", "ms"),
]:
    cached, again = zip(*numbers, strict=True)
    axes.plot(where, again, color=pictures.ORANGE, label="without: the whole text again")
    axes.plot(where, cached, color=pictures.BLUE, label="with the cache")
    axes.set(title=title, xlabel="length of the text", ylabel=f"{unit} for one more token")
    axes.set(xlim=(0, where[-1] * 1.02), ylim=(-again[-1] / 40, again[-1] * 1.2))
    for last, colour in [(again[-1], pictures.ORANGE), (cached[-1], pictures.BLUE)]:
        text = f"{last / 1e6:.2f} million" if unit == "operations" else f"{last:.1f} ms"
        place = (where[-1], last)
        axes.annotate(text, place, (0, 5), textcoords="offset points", ha="right", color=colour)
left.yaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M")
left.legend(loc="upper left")
pictures.save(figure, "cost")
torch.set_num_threads(threads)

# With the cache, the layers process only the new token, and attention to each earlier token adds a
# little. Without the cache, the layers process every token of the text: for n tokens, n times as
# many.
