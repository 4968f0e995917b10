"""Training uses the GPU. It uses the CPU if there is no GPU or the code fails on the GPU."""

from __future__ import annotations

from argparse import Namespace

import pytest
import torch

from shared import accelerator
from shared.oracles import torch_gpt
from shared.oracles.torch_gpt import TinyGPT

SIZES = {"vocab_size": 3, "n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 2}
CONFIG = Namespace(**SIZES, dropout=0.0, bias=True)


def device_and_message(monkeypatch: pytest.MonkeyPatch, device: str) -> tuple[torch.device, str]:
    monkeypatch.setattr(accelerator, "find", lambda: torch.device(device))
    return accelerator.choose(torch_gpt, lambda: TinyGPT(CONFIG), CONFIG)


def test_the_cpu_is_used_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert accelerator.find() == torch.device("cpu")
    assert device_and_message(monkeypatch, "cpu") == (torch.device("cpu"), "")


def test_a_gpu_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device `cpu:0` represents the GPU, as it differs from `cpu`."""
    device, said = device_and_message(monkeypatch, "cpu:0")
    assert device == torch.device("cpu:0")
    assert said == "Training on the GPU (cpu)."


def test_a_model_that_fails_on_the_gpu_trains_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    device, said = device_and_message(monkeypatch, "meta")
    assert device == torch.device("cpu")
    assert said.startswith("Training on the CPU. On the GPU (meta), the code raises ")
    assert "device=x.device" in said
