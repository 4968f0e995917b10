"""Use a class. Draw among the sorted tokens, and look up the index before sorting."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Sampler:
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self):
        if self.temperature < 0:
            raise ValueError("temperature < 0")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError("top_k < 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError("top_p is not in (0, 1]")

    def scale(self, logits: Tensor) -> Tensor:
        return logits if self.temperature == 1 else logits / self.temperature

    def allowed(self, ordered: Tensor) -> Tensor:
        """Return a mask of the logits to keep. They are sorted in descending order."""
        stay = torch.ones_like(ordered, dtype=torch.bool)
        if self.top_k is not None and self.top_k < ordered.shape[-1]:
            stay = ordered >= ordered[..., self.top_k - 1, None]
        if self.top_p is not None and self.top_p < 1:
            left = ordered.double().masked_fill(~stay, -torch.inf).softmax(-1)
            running = left.cumsum(-1).sub(left)
            stay = stay & (running < self.top_p)
        return stay

    def filter(self, logits: Tensor) -> Tensor:
        ordered, order = torch.sort(logits.detach(), dim=-1, descending=True, stable=True)
        stay = torch.zeros_like(logits, dtype=torch.bool)
        stay.scatter_(-1, order, self.allowed(ordered))
        return torch.where(stay, logits, torch.full_like(logits, -torch.inf))

    def draw(self, logits: Tensor, generator: torch.Generator | None) -> Tensor:
        ordered, order = torch.sort(self.scale(logits), dim=-1, descending=True, stable=True)
        if self.temperature == 0:
            return logits.argmax(dim=-1)
        weights = ordered.masked_fill(~self.allowed(ordered), -torch.inf).softmax(dim=-1)
        flat = weights.reshape(-1, weights.shape[-1])
        place = torch.multinomial(flat, 1, replacement=True, generator=generator)
        return order.gather(-1, place.reshape(*weights.shape[:-1], 1)).squeeze(-1)


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 0:
        raise ValueError("temperature is 0")
    return Sampler(temperature=temperature).scale(logits)


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    return Sampler(top_k=k).filter(logits)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    return Sampler(top_p=p).filter(logits)


def sample(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    return Sampler(temperature, top_k, top_p).draw(logits, generator)
