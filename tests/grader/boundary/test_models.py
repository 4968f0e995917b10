"""A language model across the boundary: modules of the student's in modules of the student's."""

import importlib.util
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).parent / "model.py"
SMALL = {"vocab_size": 11, "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 4}


@pytest.fixture(scope="module")
def here():
    """The file as a module of this process."""
    spec = importlib.util.spec_from_file_location("model_here", FILE)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["model_here"] = module  # a dataclass looks for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules["model_here"]


@pytest.fixture
def there(opened):
    """The file behind the boundary."""
    return opened(FILE.read_text(encoding="utf-8"))


@pytest.fixture
def both(here, there):
    """Makes a model in process and one across the boundary, with the same weights."""

    def make(name, **settings):
        models = [getattr(p, name)(p.GPTConfig(**SMALL | settings)) for p in (here, there)]
        models[1].load_state_dict(models[0].state_dict())
        return models

    return make


@pytest.fixture
def idx():
    return torch.randint(0, 11, (2, 5), generator=torch.Generator().manual_seed(0))


MODELS = ["GPT", "UntiedGPT", "DictGPT", "CachedGPT"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_seen_as_in_process(both, name):
    expected, model = both(name)
    for attribute in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        found, wanted = ([n for n, _ in getattr(m, attribute)()] for m in (model, expected))
        assert found == wanted
    assert list(model.state_dict()) == list(expected.state_dict())
    for one, other in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.equal(one, other)
    assert len(model.transformer.h) == 2
    assert model.transformer.h[0].attn.c_attn.weight.shape == (48, 16)
    assert model.transformer.h[-1] is list(model.transformer.h)[1]
    assert model.config.n_embd == model.transformer.wte.embedding_dim == 16
    assert model.n_parameters == expected.n_parameters
    assert type(model.transformer.h[0]).__name__ == "Block"


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_tied_where_they_are_in_the_worker(both, name, idx):
    expected, model = both(name)
    tied = expected.lm_head.weight is expected.transformer.wte.weight
    assert tied == (name != "UntiedGPT")
    assert (model.lm_head.weight is model.transformer.wte.weight) == tied
    with torch.no_grad():
        for each in (model, expected):
            each.transformer.wte.weight.mul_(2)
    torch.testing.assert_close(model(idx)[0], expected(idx)[0])
    for each in (model, expected):
        each.double()
        assert (each.lm_head.weight is each.transformer.wte.weight) == tied
    torch.testing.assert_close(model(idx)[0], expected(idx)[0])


def test_a_module_dict_is_one(both):
    _, model = both("DictGPT")
    assert isinstance(model.transformer, torch.nn.ModuleDict)
    assert model.transformer["wte"] is model.transformer.wte
    assert list(model.transformer) == ["wte", "wpe", "drop", "h", "ln_f"]


@pytest.mark.parametrize("name", MODELS[:3])
def test_loss_and_all_gradients(both, name, idx):
    models = both(name)
    for model in models:
        logits, loss = model(idx, targets=idx.roll(1, 1))
        assert loss.shape == ()
        assert model(idx)[1] is None
        (loss + logits.square().mean()).backward()
    for (path, expected), found in zip(
        models[0].named_parameters(), models[1].parameters(), strict=True
    ):
        torch.testing.assert_close(found.grad, expected.grad, msg=path)


def test_children_of_children_are_called(both, idx):
    models = both("GPT", n_layer=1)
    x = torch.randn(2, 3, 16)
    for call in (
        lambda m: m.transformer.h[0](x)[0],
        lambda m: m.transformer.h[0].ln_1(x),
        lambda m: m.transformer.h[0].mlp.c_fc(x),
        lambda m: m.transformer.wte(idx),
        lambda m: m.transformer.h[0].attn(x, past=None)[1][1],
    ):
        expected, found = (call(m) for m in models)
        torch.testing.assert_close(found, expected)
        models[1].zero_grad()
    found.sum().backward()
    assert models[1].transformer.h[0].attn.c_attn.weight.grad is not None


def test_generating_leaves_training_and_gradients_as_they_were(both, idx):
    expected, model = both("GPT", dropout=0.5)
    for each in (expected, model):
        assert torch.equal(each.generate(idx, 0), idx)
    assert torch.equal(model.generate(idx, 5), expected.generate(idx, max_new_tokens=5))
    assert not torch.equal(model(idx)[0], model(idx)[0])
    model.eval()
    model.generate(idx, 2)
    assert torch.equal(model(idx)[0], model(idx)[0])
    assert model(idx)[0].requires_grad
    with pytest.raises(ValueError, match="too long"):
        model(torch.zeros(1, 9, dtype=torch.int64))


def form(value):
    """The types of a structure and all that is in it."""
    if isinstance(value, list | tuple):
        return type(value), [form(item) for item in value]
    return type(value)


def test_caches_come_back_as_they_are_and_are_handed_in_again(both, idx):
    models = [model.double() for model in both("CachedGPT")]
    results = []
    for model in models:
        logits, present = model(idx[:, :2])
        more, longer = model(idx[:, 2:], present)
        assert present[1][0].shape == (2, 4, 2, 4)
        assert longer[1][1].shape == (2, 4, 5, 4)
        both_parts = torch.cat([logits, more], dim=1)
        torch.testing.assert_close(both_parts, model(idx)[0])
        torch.testing.assert_close(model(idx, [None, None])[0], model(idx, past=None)[0])
        torch.testing.assert_close(model(idx[:, 2:], tuple(tuple(p) for p in present))[0], more)
        more.sum().backward()
        results.append(present)
    assert form(results[1]) == form(results[0])
    for one, other in zip(models[1].parameters(), models[0].parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_gradients_of_every_part_of_a_cache(both, idx):
    models = [model.double() for model in both("CachedGPT")]
    gradients = []
    for model in models:
        _, present = model(idx)
        past = [tuple(t.detach().requires_grad_() for t in pair) for pair in present]
        _, present = model(idx[:, :2], past)
        sum(t.square().sum() for pair in present for t in pair).backward()
        gradients.append([t.grad for pair in past for t in pair])
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.slow
def test_a_model_is_trained_from_here(both):
    """Its weights reach the worker after each step."""
    batch = torch.randint(0, 11, (4, 8), generator=torch.Generator().manual_seed(1))
    losses = []
    for model in both("GPT"):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(30):
            _, loss = model(batch[:, :-1], batch[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert losses[0] < 2


def test_weights_are_not_shared_or_parted_from_here(both, idx):
    """The worker would not know of it."""
    _, model = both("GPT")
    model.lm_head.weight = torch.nn.Parameter(torch.zeros(11, 16))
    with pytest.raises(TypeError, match="isn't supported"):
        model(idx)
    _, model = both("UntiedGPT")
    model.lm_head.weight = model.transformer.wte.weight
    with pytest.raises(TypeError, match="isn't supported"):
        model(idx)


NAMED = """
from typing import NamedTuple
import torch
class Pair(NamedTuple):
    k: torch.Tensor
    v: torch.Tensor
    @property
    def length(self): return len(self.k)
class Cache(list):
    def total(self): return sum(pair.length for pair in self)
class Table(dict): pass
def make(x): return Cache([Pair(x, 2 * x), Pair(v=x, k=x)])
def table(x): return Table(one=x)
def use(cache): return cache.total() + cache[0].v.sum()
def kind(thing): return type(thing).__name__
"""


def test_containers_of_the_students_classes_are_theirs_when_they_are_back(opened):
    problem, x = opened(NAMED), torch.ones(3, requires_grad=True)
    cache = problem.make(x)
    assert isinstance(cache, list)
    assert [type(pair).__name__ for pair in cache] == ["Pair", "Pair"]
    k, v = cache[0]
    assert cache[0].k is k
    assert cache[1].v is cache[1][1]
    assert torch.equal(k + k, v)
    found = problem.use(cache)
    found.backward()
    assert (found, x.grad.tolist()) == (12, [2, 2, 2])
    assert problem.kind(tuple(cache[1])) == "tuple"
    assert list(problem.table(x)) == ["one"]
    assert [problem.kind(t) for t in (cache, cache[0], problem.table(x))] == [
        "Cache",
        "Pair",
        "Table",
    ]
