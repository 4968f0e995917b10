"""Objects of the student's classes stay in the worker, and can be handed back to it."""

import copy
import gc
import pickle

import pytest
import torch

from grader.boundary.failures import WorkerFailure
from grader.result import Status

SOURCE = """
    from dataclasses import dataclass
    import gc
    import os
    import torch
    from torch import nn

    @dataclass
    class Config:
        width: int = 768
        rate: float = 0.5
        name: str = "small"
        bias: bool = True
        seed: int | None = None
        shape: tuple = (1, 2)
        _private: int = 3

        @property
        def half(self): return self.width // 2
        def doubled(self, times=2): return Config(self.width * times)
        @property
        def broken(self): raise ValueError("not yet")

    @dataclass(slots=True)
    class Slotted:
        width: int
        rate: float = 0.25

    class Plain:
        width = 4
        def __init__(self, rate): self.rate = rate

    class Cache:
        def __init__(self): self.tensors = []

    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.config = config
            self.linear = nn.Linear(config.width, config.width)
        def forward(self, x, cache=None):
            cache = cache or Cache()
            cache.tensors.append(self.linear(x))
            return sum(cache.tensors), cache

    def widths(configs, **more): return [c.width for c in [*configs, *more.values()]]
    def inside(): return {"one": [Config(1), (Config(2), None)]}
    def widen(config): config.width += 1; return config
    def same(one, other): return one is other
    def alive(): return sum(isinstance(thing, Config) for thing in gc.get_objects())
    def end(): os._exit(3)
    """


def test_plain_fields_and_defaults_can_be_read(opened):
    problem = opened(SOURCE)
    config = problem.Config(8, name="tiny", rate=float("inf"))
    assert type(config).__name__ == "Config"
    assert (config.width, config.rate, config.name) == (8, float("inf"), "tiny")
    assert (config.bias, config.seed) == (True, None)
    assert problem.Config().width == 768
    slotted, plain = problem.Slotted(3), problem.Plain(0.75)
    assert (slotted.width, slotted.rate) == (3, 0.25)
    assert (plain.width, plain.rate) == (4, 0.75)
    assert repr(plain) == "Plain(width=4, rate=0.75)"


def test_what_is_no_plain_field_is_asked_for(opened):
    config = opened(SOURCE).Config(8)
    assert config.half == 4
    assert config.shape == (1, 2)
    assert config.doubled(times=3).width == 24
    with pytest.raises(ValueError, match="not yet"):
        config.broken  # noqa: B018
    with pytest.raises(AttributeError, match="'Config' object has no attribute 'nothing'"):
        config.nothing  # noqa: B018
    assert not hasattr(config, "__len__")


def test_objects_are_handed_back_alone_and_in_containers(opened):
    problem = opened(SOURCE)
    one, other = problem.Config(1), problem.Config(2)
    assert problem.widths([one, other], last=one) == [1, 2, 1]
    assert problem.widths((other,)) == [2]
    assert problem.same(one, one)
    assert not problem.same(one, other)
    found = problem.inside()["one"]
    assert [found[0].width, found[1][0].width, found[1][1]] == [1, 2, None]
    model = problem.Model(problem.Config(width=4))
    assert model.linear.in_features == 4
    assert model.config.width == 4
    assert problem.Model(model.config).linear.in_features == 4


def test_an_object_with_tensors_serves_as_a_cache(opened):
    problem = opened(SOURCE)
    model = problem.Model(problem.Config(4))
    x = torch.randn(2, 4)
    once, cache = model(x)
    twice, cache = model(x, cache)
    assert torch.equal(twice, once + once)
    assert len(cache.tensors) == 2
    assert torch.equal(cache.tensors[0], once)
    twice.sum().backward()
    torch.testing.assert_close(model.linear.weight.grad, 2 * x.sum(0).expand(4, 4))


def test_what_a_test_holds_stays_as_it_came(opened):
    """A worker could fit its fields to its answers otherwise."""
    problem = opened(SOURCE)
    config = problem.Config(1)
    assert problem.widen(config).width == 2
    assert config.width == 1
    assert problem.widths([config]) == [2]


def test_unsupported_uses_are_refused(opened):
    with pytest.raises(TypeError, match=r"reading Config.width isn't supported"):
        opened(SOURCE).Config.width  # noqa: B018
    config = opened(SOURCE).Config(1)
    for change in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copying a Config in a test isn't supported"):
            change(config)
    with pytest.raises(TypeError, match=r"setting Config.width from a test isn't supported"):
        config.width = 2
    with pytest.raises(TypeError, match="isn't supported"):
        del config.width
    with pytest.raises(TypeError, match="can't be handed to a student's code in grading: a Config"):
        opened(SOURCE).widths([config])


def test_objects_of_a_process_that_ended(opened):
    problem = opened(SOURCE)
    config = problem.Config(1)
    with pytest.raises(WorkerFailure, match="exit status 3"):
        problem.end()
    assert config.width == 1
    for use in (lambda: problem.Model(config), lambda: config.half):
        with pytest.raises(
            WorkerFailure, match="process that held this Config has ended"
        ) as caught:
            use()
        assert caught.value.status is Status.CRASH


def test_objects_are_forgotten_with_their_handles(opened):
    problem = opened(SOURCE)
    kept = [problem.Config(number) for number in range(3)]
    assert problem.alive() == 3
    model = problem.Model(kept[0])
    del kept
    gc.collect()
    problem.alive()
    assert problem.alive() == 1
    del model
    gc.collect()
    problem.alive()
    assert problem.alive() == 0
