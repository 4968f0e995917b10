"""Define the model that the tests of problem 10 train, and an optimizer without state."""

import torch
from torch import nn


class SmallModel(nn.Module):
    """A model that predicts the next token from one token and its position.

    Args:
        vocab_size: the number of tokens.
        n_positions: the largest length of a sequence.
        n_embd: the embedding width C.
        dropout: the probability with which a hidden activation is dropped in training.
    """

    def __init__(self, vocab_size, n_positions, n_embd, dropout=0.0):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(n_positions, n_embd)
        self.hidden = nn.Linear(n_embd, n_embd)
        self.drop = nn.Dropout(dropout)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        """Return the logits (B, T, V) for tokens (B, T)."""
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        return self.lm_head(self.drop(torch.tanh(self.hidden(x))))


class SGD:
    """An optimizer: plain gradient descent with a fixed learning rate."""

    def __init__(self, parameters, lr):
        self.parameters = list(parameters)
        self.lr = lr

    @torch.no_grad()
    def step(self):
        """Subtract `lr` times the gradient from each parameter, in place."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter -= self.lr * parameter.grad

    def zero_grad(self):
        """Set the gradient of each parameter to None."""
        for parameter in self.parameters:
            parameter.grad = None


def random_weights(rng, vocab_size=7, n_positions=6, n_embd=4, dtype=torch.float32):
    """Return random weights of a SmallModel; their loss is far from its minimum."""
    shapes = {
        "wte.weight": (vocab_size, n_embd),
        "wpe.weight": (n_positions, n_embd),
        "hidden.weight": (n_embd, n_embd),
        "hidden.bias": (n_embd,),
        "lm_head.weight": (vocab_size, n_embd),
        "lm_head.bias": (vocab_size,),
    }
    return {name: rng.normal(*shape, dtype=dtype) for name, shape in shapes.items()}


def random_batch(rng, batch, length, vocab_size=7):
    """Return random tokens and targets, each (batch, length)."""
    drawn = torch.randint(vocab_size, (2, batch, length), generator=rng.generator)
    return drawn[0], drawn[1]


# Modules with given weights


def model_of(weights, dropout=0.0):
    """Return a SmallModel with these weights and their dtype."""
    vocab_size, n_embd = weights["wte.weight"].shape
    model = SmallModel(vocab_size, len(weights["wpe.weight"]), n_embd, dropout)
    model.to(weights["wte.weight"].dtype).load_state_dict(weights)
    return model


def parameters_of(weights):
    """Return a module whose parameters are copies of `weights`, by the same names."""
    return nn.ParameterDict({name: weight.clone() for name, weight in weights.items()})


def weights_in(module):
    """Return a copy of each parameter, by name."""
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def gradients_in(module):
    """Return a copy of each gradient by the parameter's name; None if there is no gradient."""
    named = module.named_parameters()
    return {name: None if p.grad is None else p.grad.clone() for name, p in named}


def set_gradients(module, gradients):
    """Set the gradient of each parameter by name, or to None if `gradients` does not contain it."""
    for name, parameter in module.named_parameters():
        parameter.grad = gradients[name].clone() if name in gradients else None


def modes_in(module):
    """Return the training mode of the module and of each submodule, as a list of bools."""
    return [each.training for each in module.modules()]
