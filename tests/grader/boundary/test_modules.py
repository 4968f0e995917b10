"""The student's modules: their parameters and layers are here, and what they do happens there."""

import copy
import gc
import math
import pickle

import pytest
import torch
from torch import nn

from grader.boundary.failures import WorkerFailure
from grader.errors import Mismatch

LAYER = """
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, n_embd=4, bias=True, dropout=0.5):
            super().__init__()
            self.n_embd = n_embd
            self.query = nn.Linear(n_embd, n_embd, bias=bias)
            self.drop = nn.Dropout(dropout)
            self.register_buffer("mask", torch.ones(3, 3, dtype=torch.bool).tril())
            self.register_buffer("scratch", torch.zeros(2), persistent=False)

        def forward(self, x):
            return self.drop(self.query(x))

        def doubled(self, x):
            return 2 * self.query(x)
    """


def test_modules_show_their_parameters_and_layers(opened):
    layer = opened(LAYER).Layer(6, bias=False)
    assert type(layer).__name__ == "Layer"
    assert isinstance(layer.query, nn.Linear)
    assert type(layer.query).__name__ == "Linear"
    assert (layer.query.in_features, layer.query.bias, layer.n_embd) == (6, None, 6)
    assert [name for name, _ in layer.named_parameters()] == ["query.weight"]
    assert [name for name, _ in layer.named_buffers()] == ["mask", "scratch"]
    assert list(layer.state_dict()) == ["mask", "query.weight"]
    assert layer.mask.dtype == torch.bool
    assert isinstance(layer.drop, nn.Dropout)
    assert layer.drop.p == 0.5


def test_attributes_of_a_module_are_read_in_the_worker(opened):
    problem = opened("""
        import math
        from torch import nn
        class Layer(nn.Module):
            width = 3
            def __init__(self):
                super().__init__()
                self.heads, self.rate, self.kind, self.calls = 2, 0.5, "small", 0
                self.most, self.large, self.sizes, self._own = math.inf, 1 << 70, (1, 2), 1
                self.__dict__["depth"] = 1
            @property
            def depth(self): return 7
            def forward(self): self.calls += 1
    """)
    layer = problem.Layer()
    assert (layer.heads, layer.rate, layer.kind, layer.calls) == (2, 0.5, "small", 0)
    assert (layer.most, layer.sizes, layer.width, layer.depth) == (math.inf, (1, 2), 3, 7)
    assert not hasattr(layer, "nothing")
    layer()
    assert layer.calls == 1
    with pytest.raises(WorkerFailure):
        problem.Layer().large  # noqa: B018


def test_weights_set_here_are_used_there(opened):
    layer = opened(LAYER).Layer(4).eval()
    x = torch.randn(2, 4)
    with torch.no_grad():
        layer.query.weight.copy_(torch.eye(4))
        layer.query.bias.fill_(1)
    assert torch.equal(layer(x), x + 1)
    layer.query.weight.data.mul_(2)  # moves no version counter
    assert torch.equal(layer(x), 2 * x + 1)
    layer.load_state_dict(layer.state_dict() | {"query.bias": torch.zeros(4)})
    assert torch.equal(layer(x), 2 * x)
    assert torch.equal(layer.doubled(x), 4 * x)
    layer.query.weight = nn.Parameter(torch.zeros(4, 4))
    assert torch.equal(layer(x), torch.zeros(2, 4))


def test_modules_move_to_another_dtype(opened):
    layer = opened(LAYER).Layer(4).double().eval()
    assert layer(torch.randn(2, 4).double()).dtype == torch.float64
    assert layer.mask.dtype == torch.bool


def test_train_eval_and_settings_of_layers_reach_the_worker(opened):
    layer = opened(LAYER).Layer(50, dropout=0.5)
    x = torch.ones(20, 50)
    assert (layer(x) == 0).any()
    assert not (layer.eval()(x) == 0).any()
    layer.train().drop.p = 1.0
    assert (layer(x) == 0).all()


def test_modes_that_the_code_changes_come_back(opened):
    layer = opened("""
        from torch import nn
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop, self.other = nn.Dropout(1.0), nn.Identity()
            def forward(self, x):
                return self.drop(x)
            def generate(self, x, stops=False):
                self.eval()
                self.other.train()
                if stops:
                    raise ValueError("stopped")
                return x
        """).Layer()
    x = torch.ones(3)
    layer.generate(x)
    assert [part.training for part in layer.modules()] == [False, False, True]
    assert layer(x).all()
    assert not layer.train()(x).any()
    with pytest.raises(ValueError, match="stopped"):
        layer.generate(x, stops=True)
    assert not layer.training
    assert not layer.train()(x).any()


def test_settings_that_the_code_changes_stay_as_it_left_them(opened):
    layer = opened("""
        from torch import nn
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = nn.Dropout(1.0)
            def forward(self, x):
                if not self.training:
                    self.drop.p = 0.0
                return self.drop(x)
        """).Layer()
    x = torch.ones(3)
    assert not layer.train()(x).any()
    assert layer.eval()(x).all()
    assert layer.train()(x).all()
    layer.drop.p = 1 - 1e-9  # a test's own word comes after it
    assert not layer(x).all()


def test_gradients_of_weights(opened):
    layer = opened(LAYER).Layer(4).double().eval()
    twin = nn.Linear(4, 4).double()
    twin.load_state_dict(layer.query.state_dict())
    x = torch.randn(3, 4).double().requires_grad_()
    y = x.detach().clone().requires_grad_()
    upstream = torch.randn(3, 4).double()
    layer(x).backward(upstream)
    twin(y).backward(upstream)
    torch.testing.assert_close(layer.query.weight.grad, twin.weight.grad)
    torch.testing.assert_close(x.grad, y.grad)
    layer.requires_grad_(False)
    assert not layer(y.detach()).requires_grad


def test_an_optimizer_trains_a_remote_module(opened):
    layer = opened(LAYER).Layer(4, dropout=0.0)
    x = torch.randn(16, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.3)
    losses = []
    for _ in range(5):
        loss = (layer(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_modules_within_modules_and_shared_weights(opened):
    problem = opened(
        """
        from torch import nn
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.own = nn.Linear(2, 2)
            def forward(self, x):
                return self.own(x) + 1
        class Wide(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 3
        class Many(nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = nn.ModuleList([Head(), Head()])
                self.heads[1].own.weight = self.heads[0].own.weight
                self.wide = Wide(2, 2)
            def forward(self, x):
                return self.wide(sum(head(x) for head in self.heads))
        """
    )
    many, x = problem.Many(), torch.randn(3, 2)
    assert many.heads[0].own.weight is many.heads[1].own.weight
    assert isinstance(many.wide, nn.Linear)
    inner = sum(head.own(x) + 1 for head in many.heads)
    assert torch.equal(many.heads[0](x), many.heads[0].own(x) + 1)
    torch.testing.assert_close(
        many(x), 3 * nn.functional.linear(inner, many.wide.weight, many.wide.bias)
    )


def test_layers_of_torch_run_in_the_worker(opened):
    """Whatever the student returns: its settings and weights are here, its forward isn't."""
    problem = opened(
        """
        from torch import nn
        def layers():
            return nn.ModuleList([nn.Linear(2, 2), nn.Dropout(1.0, inplace=True), nn.Identity()])
        """
    )
    layers, x = problem.layers(), torch.randn(3, 2, requires_grad=True)
    assert [type(layer).__name__ for layer in layers] == ["Linear", "Dropout", "Identity"]
    assert len(layers) == 3
    assert repr(layers[1]) == "Dropout(p=1.0, inplace=True)"
    torch.testing.assert_close(layers[0](x), nn.functional.linear(x, *layers[0].parameters()))
    layers[0](x).sum().backward()
    assert layers[0].weight.grad is not None
    before = x.detach().clone()
    assert not layers[1](x.detach()).any()
    assert not torch.equal(x, before)  # the change is noticed
    torch.testing.assert_close(x, before)
    assert torch.equal(layers.eval()[1](x), x)
    layers.train()[1].inplace = False
    assert torch.equal(layers[1](x), torch.zeros(3, 2))
    with pytest.raises(TypeError, match="isn't supported"):
        layers[0].forward = None


def test_buffers_made_in_forward_are_seen(opened):
    problem = opened(
        """
        import torch
        from torch import nn
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.zeros(1))
            def forward(self, x):
                self.mask = torch.ones(len(x))
                return x * 1
        """
    )
    module = problem.Late()
    before = module.mask
    module(torch.ones(3))
    assert torch.equal(module.mask, torch.ones(3))
    assert torch.equal(before, torch.zeros(1))


def test_weights_that_a_call_changes_are_an_error(opened):
    spoil = """
        def spoil(self, x):
            self.query.weight.data.zero_()
            return x
    """
    layer = opened(LAYER + spoil).Layer(4)
    before = layer.query.weight.clone()
    with pytest.raises(Mismatch, match=r"changed its own weights \(query.weight\)"):
        layer.spoil(torch.ones(1))
    assert torch.equal(layer.query.weight, before)


def test_unsupported_uses_of_modules_are_refused(opened):
    layer = opened(LAYER).Layer()
    with pytest.raises(TypeError, match="isn't supported"):
        layer.query = nn.Linear(1, 1)
    with pytest.raises(TypeError):
        copy.deepcopy(layer)
    with pytest.raises((TypeError, pickle.PicklingError, AttributeError)):
        pickle.dumps(layer)
    with pytest.raises(AttributeError, match="'Layer' object has no attribute 'nothing'"):
        layer.nothing  # noqa: B018


def test_what_is_forgotten_here_is_forgotten_there(opened):
    problem = opened(
        LAYER
        + """
    import gc
    def alive():
        return sum(isinstance(thing, Layer) for thing in gc.get_objects())
    """
    )
    layers = [problem.Layer() for _ in range(3)]
    assert problem.alive() == 3
    del layers
    gc.collect()
    problem.alive()
    assert problem.alive() == 0
