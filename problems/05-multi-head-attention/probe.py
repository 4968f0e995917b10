"""Tells known mistakes in problem 05 apart: an instrument of the grader's, not a lesson."""

from functools import cache, partial

import torch
from grader.testing.diagnose import attempt
from torch import nn

from grader.testing.compare import gradients, parameters, set_weights
from telltale import COPIES, plain_weights, read_dropped, shown_weights, telltale
from worked_example import holding, multi_head_by_hand, quick, waves

GPT2_NAMES = ["c_attn.bias", "c_attn.weight", "c_proj.bias", "c_proj.weight"]
LONG = 1030


def probe(problem):
    """Ask a few small fixed questions; known mistakes answer them differently."""
    weights, x = wave_weights(6), waves(2, 4, 6, start=0.5)
    counting = torch.arange(24, dtype=torch.float64)

    def steady(module, x):
        # What chance decides says nothing about a mistake, only that there was chance.
        first = module(x)
        again = [torch.allclose(module(x), first, equal_nan=True) for _ in range(4)]
        return first if all(again) else False

    def forward(x=x, n_head=2, weights=weights, evaluate=False, **options):
        return steady(make_attention(problem, weights, n_head, **options).train(not evaluate), x)

    def without_bias():
        if len(list(problem.MultiHeadAttention(6, 2, bias=False).parameters())) != 2:
            return False
        return forward(weights={name: weights[name] for name in weights if "weight" in name})

    def defaults():
        module = problem.MultiHeadAttention()
        sizes = (module.n_embd, module.n_head, module.head_dim)
        rates = (module.attn_dropout.p, module.resid_dropout.p)
        return torch.tensor([*sizes, *rates, len(list(module.parameters()))])

    def default_forward():
        module = problem.MultiHeadAttention(6, 2).double()
        set_weights(module, weights)
        return steady(module, x)

    def layers(dropout, bias):
        module = problem.MultiHeadAttention(12, 3, dropout, False, bias)
        shapes = [
            tuple(p.shape) for name, p in sorted(parameters(module).items()) if name in GPT2_NAMES
        ]
        sizes = [module.n_embd, module.n_head, module.head_dim]
        for name in ("attn_dropout", "resid_dropout"):
            child = getattr(module, name, None)
            sizes.append(child.p if isinstance(child, nn.Dropout) else -1)
        return torch.tensor([*sizes, *(size for shape in shapes for size in shape)])

    def accepted(n_embd, n_head):
        problem.MultiHeadAttention(n_embd, n_head)
        return True

    def extreme(case):
        low, tokens = plain_weights(6), waves(1, 4, 6)
        if case == "far below":
            low["c_attn.bias"][[0, 3]] = 1e17
            low["c_attn.bias"][[6, 9]] = -1e18
        elif case == "far above":
            low["c_attn.bias"][[0, 3]] = 1
            low["c_attn.weight"][[6, 9], 0] = 1
            low["c_attn.weight"][12, 0] = 0
            tokens[:, -1, 0] = 1e30
        else:
            low["c_attn.weight"][[0, 3], 0] = 1
            low["c_attn.bias"][[6, 9]] = 1
            low["c_attn.weight"][12, 0] = 0
            tokens[0, :, 0] = torch.tensor([4000.0, -4000, 0, 2000])
        return forward(tokens, weights=low, causal=case != "rows apart")

    def second_call():
        module = make_attention(problem, weights, 2, causal=True).eval()
        module(x)
        return module(x[:1] + 1)

    def lengths():
        module = make_attention(problem, weights, 2, causal=True).eval()
        return torch.cat([module(x[:, :n] * n) for n in (3, 4, 2, 1)], dim=1)

    @torch.no_grad()
    def long():
        module = make_attention(problem, plain_weights(2), 1, causal=True).eval()
        return (
            not quick(lambda n: module(torch.zeros(1, n, 2).double()), LONG)
            or module(torch.ones(1, LONG, 2).double()).sum() / 2 / LONG
        )

    def gradient(name):
        tokens = x.clone().requires_grad_()
        module = make_attention(problem, weights, 2, causal=True).eval()
        inputs = {"x": tokens} | parameters(module)
        return gradients(module(tokens), inputs, waves(2, 4, 6, start=0.6), "")[name].sum(-1)

    def split_gradient():
        tokens = x.clone().requires_grad_()
        heads = problem.split_heads(tokens, 2)
        return gradients(heads, {"x": tokens}, waves(*heads.shape), "")["x"]

    def merge_gradient():
        heads = counting.reshape(2, 3, 2, 2).requires_grad_()
        merged = problem.merge_heads(heads)
        return gradients(merged, {"x": heads}, waves(*merged.shape), "")["x"]

    def changed():
        tokens, heads = x.clone(), counting.reshape(2, 3, 2, 2).clone()
        module = make_attention(problem, weights, 2, causal=True)
        problem.split_heads(tokens, 2)
        problem.merge_heads(heads)
        module(tokens)
        same = all(torch.equal(parameters(module)[name], w) for name, w in weights.items())
        kept = torch.equal(heads, counting.reshape(2, 3, 2, 2))
        return not (same and kept and torch.equal(tokens, x))

    def rounded_off(n_head):
        output = forward(n_head=n_head)
        if output is False:
            return False
        error = (output - multi_head_by_hand(x, weights, n_head)).abs().max()
        return 1e-11 < error < 1e-3

    def state_changed():
        module = make_attention(problem, weights, 2, dropout=0.5).eval()
        before = torch.get_rng_state()
        module(x)
        return not torch.equal(torch.get_rng_state(), before)

    def made_alike():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            starts.append(problem.MultiHeadAttention(6, 2).c_attn.weight.detach().clone())
        return torch.equal(*starts)

    def drawn(seeds):
        module = make_attention(problem, weights, 2, dropout=0.5)
        outputs = []
        for seed in seeds:
            torch.default_generator.manual_seed(seed) if seed else None
            outputs.append(module(x))
        return torch.equal(outputs[-1], outputs[-2])

    def same_weights_dropped():
        scores, batch = waves(2, 3, 3) * 1.5, 20
        module, sequence = telltale(partial(make_attention, problem, dropout=0.25), scores)
        calls = [module(sequence.repeat(batch, 1, 1)).detach() for _ in range(2)]
        entries = [output.reshape(batch, 3, 2, 3, COPIES) for output in calls]
        weights = shown_weights(scores, causal=False)
        return torch.equal(*(read_dropped(entry, weights, 0.25)[0] for entry in entries))

    @cache
    def telltale_output():
        torch.default_generator.manual_seed(1)
        scores, batch = waves(2, 3, 3) * 1.5, 300
        module, sequence = telltale(partial(make_attention, problem, dropout=0.25), scores)
        entries = module(sequence.repeat(batch, 1, 1)).detach().reshape(batch, 3, 2, 3, COPIES)
        return entries, *read_dropped(entries, shown_weights(scores, False), 0.25)

    def shared(dropped):
        agree = [(dropped.int().diff(dim=d) == 0).double().mean() for d in range(dropped.dim())]
        return (torch.stack(agree) > 0.95) & (dropped.double().mean() > 0.02)

    def dropped(question):
        entries, weight, entry = telltale_output()
        if question == "weights":
            return shared(weight)
        if question == "entries":
            return shared(entry.flatten(2))
        if shared(weight).any() or shared(entry.flatten(2)).any():
            return False  # Then there is too much chance in the numbers.
        if question == "values":
            kept = entries[entries.abs() > 1e-9]
            return torch.stack([kept.min(), kept.max()])
        if question == "rates":
            return torch.stack([(d.double().mean() * 10 + 0.2).floor() for d in (weight, entry)])
        low = entries < 1 / 0.75 + 1e-6
        return (low.int().diff(dim=1) == 0).double().mean() > 0.595

    def training_gradient():
        module = make_attention(problem, weights, 2, dropout=0.5)
        inputs = {"c_attn": parameters(module)["c_attn.weight"]}
        found = gradients(module(x), inputs, waves(2, 4, 6, start=0.7), "")
        return found["c_attn"].isfinite().all()

    return {
        "split_heads, 3 heads": attempt(problem.split_heads, counting.reshape(2, 2, 6), 3),
        "split_heads, 2 heads": attempt(problem.split_heads, counting.reshape(1, 4, 6), 2),
        "split_heads, 1 position": attempt(problem.split_heads, counting.reshape(4, 1, 6), 1),
        "split_heads, float32": attempt(problem.split_heads, counting.reshape(2, 2, 6).float(), 3),
        "split_heads, gradient": attempt(split_gradient),
        "merge_heads": attempt(problem.merge_heads, counting.reshape(2, 3, 2, 2)),
        "merge_heads, 1 sequence": attempt(problem.merge_heads, counting.reshape(1, 3, 4, 2)),
        "merge_heads, 1 position": attempt(problem.merge_heads, counting.reshape(4, 2, 1, 3)),
        "merge_heads, float32": attempt(problem.merge_heads, counting.reshape(2, 3, 2, 2).float()),
        "merge_heads, gradient": attempt(merge_gradient),
        "layers": attempt(layers, 0.25, True),
        "layers without bias": attempt(layers, 0.0, False),
        "defaults": attempt(defaults),
        "n_head 0": attempt(accepted, 12, 0),
        "n_head -4": attempt(accepted, 12, -4),
        "n_head 5": attempt(accepted, 12, 5),
        "n_head 1": attempt(accepted, 12, 1),
        "attention": attempt(forward),
        "causal attention": attempt(forward, causal=True),
        "default attention": attempt(default_forward),
        "attention, 1 head": attempt(forward, x[:1], n_head=1),
        "attention, 6 heads": attempt(forward, x[:1], n_head=6, causal=True),
        "attention without bias": attempt(without_bias),
        "attention, 1 sequence": attempt(forward, x[:1], causal=True),
        "attention, 1 position": attempt(forward, x[:, :1], causal=True),
        "attention, float32": attempt(forward, x.float(), dtype=torch.float32),
        "scores far below 0": attempt(extreme, "far below"),
        "future scores far above": attempt(extreme, "far above"),
        "rows of scores far apart": attempt(extreme, "rows apart"),
        "second call": attempt(second_call),
        "several lengths": attempt(lengths),
        "long sequence": attempt(long),
        "gradient of x": attempt(gradient, "x"),
        "gradient of c_attn": attempt(gradient, "c_attn.weight"),
        "gradient of c_proj": attempt(gradient, "c_proj.weight"),
        "argument changed": attempt(changed),
        "float64 rounded off": attempt(rounded_off, 2),
        "float64 rounded off, 6 heads": attempt(rounded_off, 6),
        "evaluation": attempt(forward, evaluate=True, dropout=0.5),
        "evaluation, causal": attempt(forward, evaluate=True, dropout=0.5, causal=True),
        "evaluation draws": attempt(state_changed),
        "other seed, same weights": attempt(made_alike),
        "same seed, same output": attempt(drawn, [3, 3]),
        "other seed, same output": attempt(drawn, [3, 4]),
        "next call, same output": attempt(drawn, [3, 0]),
        "next call, same weights dropped": attempt(same_weights_dropped),
        "dropout, least and most": attempt(dropped, "values"),
        "dropout, rates": attempt(dropped, "rates"),
        "dropout, shared weights": attempt(dropped, "weights"),
        "dropout, shared entries": attempt(dropped, "entries"),
        "dropout, queries agree": attempt(dropped, "queries"),
        "dropout, gradient": attempt(training_gradient),
    }


def make_attention(problem, weights, n_head, *, dtype=torch.float64, **options):
    """The student's MultiHeadAttention of this dtype, holding these weights."""
    options = {"dropout": 0.0, "causal": False, "bias": "c_proj.bias" in weights} | options
    n_embd = len(weights["c_proj.weight"])
    return holding(problem.MultiHeadAttention(n_embd, n_head, **options), weights, dtype)


def wave_weights(n_embd):
    """Fixed weights of a layer of this width."""
    return {
        "c_attn.weight": waves(3 * n_embd, n_embd, start=0.1) * 0.8,
        "c_attn.bias": waves(3 * n_embd, start=0.2) / 2,
        "c_proj.weight": waves(n_embd, n_embd, start=0.3),
        "c_proj.bias": waves(n_embd, start=0.4),
    }
