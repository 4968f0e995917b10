"""Choose the device for training: a GPU if the student's code runs on it, otherwise the CPU."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from shared import student_parts

CPU = torch.device("cpu")


def find() -> torch.device:
    """Return the GPU (CUDA, or MPS on a Mac), or the CPU if there is none."""
    gpu = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return gpu or CPU


def choose(
    step_code: Any, make_model: Callable[[], nn.Module], config: Namespace
) -> tuple[torch.device, str]:
    """Choose the device for training, and return it with a message for the user.

    A GPU is chosen only if one training step runs on it. Without a GPU, the message is empty.

    Args:
        step_code: the module that defines AdamW and train_step: the student's or the course's.
        make_model: returns a new model on the CPU.
        config: the arguments of GPTConfig.
    """
    device = find()
    if device == CPU:
        return CPU, ""
    try:
        student_parts.seconds_per_step(step_code, make_model().to(device), config, steps=1)
    except Exception as error:
        return CPU, (
            f"Training on the CPU. On the GPU ({device.type}), the code raises "
            f"{type(error).__name__}: {error}\nDoes it create tensors without device=x.device?"
        )
    return device, f"Training on the GPU ({device.type})."
