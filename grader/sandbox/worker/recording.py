"""Run a problem's tests on a student's file in a worker.

A worker that was forked by a prefork server calls `main`. A worker in a fresh interpreter calls
`main_alone`.
"""

from __future__ import annotations

import json
import os
import pkgutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import torch

from grader.code.forbidden import without_compiler
from grader.code.quiet import Printed
from grader.code.tensors import keep_memory
from grader.sandbox.frames import receive_frame, send_frame
from grader.sandbox.worker.removal import close_roads, refuse_later, remove
from grader.sandbox.worker.student_file import MODULE, Attempts, hide_own_modules, run_source

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_MOST_BYTES = 1 << 30
_MOST_PRINTED = 20_000


class LoadedSource(NamedTuple):
    """A student's file that was run as a module.

    Attributes:
        module: the module.
        error: the exception that the file raised, if any.
        attempts: the kind and name of each forbidden action that the file tried while it ran.
        called: the list that receives the name of the first removed function that is called.
        printed: returns the text that was printed since the last call of `printed`.
    """

    module: ModuleType
    error: BaseException | None
    attempts: list[tuple[str, str]]
    called: list[str]
    printed: Callable[[], str]


RunOrder = Callable[[bytes, LoadedSource], Iterator[bytes]]
"""A function that runs an order's tests on a student's file, and yields a message for each test."""


def main(channel: socket.socket, called: list[str], run_tests: RunOrder) -> None:
    """Receive settings, a student's file and an order (a request to run tests), and run the tests.

    A message is sent after each test.

    Args:
        channel: the connection to the trusted process.
        called: the list that receives the name of the first removed function that is called.
        run_tests: the function that runs the tests.
    """
    settings, source, order = (receive_frame(channel, _MOST_BYTES) for _ in range(3))
    setting = json.loads(settings)
    printed: Callable[[], str] = str
    if setting["capture"]:
        sys.stdout = sys.stderr = kept = Printed(_MOST_PRINTED)
        printed = kept.take
    refuse_later(setting["forbidden"], called)
    module, error, attempts = ModuleType(MODULE), None, Attempts()
    try:
        run_source(source, module)
    except BaseException as exception:
        error = exception
    called.clear()  # calls while the file is loaded are allowed
    loaded = LoadedSource(module, error, attempts.found(), called, printed)
    for message in run_tests(order, loaded):
        send_frame(channel, message)


def main_alone(channel: socket.socket, config: dict[str, Any]) -> None:
    """Run as a worker in a fresh interpreter, without a prefork server.

    Args:
        channel: the connection to the trusted process.
        config: contains `forbidden`, the functions to remove, and `load`, the arguments of
            `load_tests`, or None.
    """
    prepare_torch()
    run_tests = load_tests(*config["load"]) if config["load"] else call_functions
    called: list[str] = []
    remove(config["forbidden"], called)
    hide_own_modules()
    send_frame(channel, b"")
    main(channel, called, run_tests)


def call_functions(order: bytes, loaded: LoadedSource) -> Iterator[bytes]:
    """Call functions of a file without any tests, and yield each result as JSON.

    Args:
        order: a JSON list of calls. Each call is a list of a function's name and the arguments.
        loaded: the file.
    """
    if loaded.error is not None:
        raise loaded.error
    for name, *arguments in json.loads(order):
        yield json.dumps(getattr(loaded.module, name)(*arguments)).encode()


def load_tests(function: str, folder: str) -> RunOrder:
    """Call a function of the grader that loads tests, and return its result.

    Args:
        function: the function, as `package.module:function`.
        folder: the argument of the function, a folder with the tests.
    """
    with _importable_grader():
        run_tests: RunOrder = pkgutil.resolve_name(function)(folder)
    return run_tests


def load_code(function: str) -> None:
    """Import the module of a function of the grader, given as `package.module:function`."""
    with _importable_grader():
        pkgutil.resolve_name(function)


@contextmanager
def _importable_grader() -> Iterator[None]:
    sys.path.insert(0, _ROOT)
    try:
        yield
    finally:
        del sys.path[0]


def prepare_torch() -> None:
    """Do torch's one-time initialization before workers are forked.

    Otherwise each worker would repeat the initialization, and a confined worker can't do all of it.
    """
    keep_memory()
    torch.set_num_threads(1)
    # A worker can't start threads, and torch would wait for them.
    torch.set_num_threads = torch._C.set_num_threads = _ignore
    without_compiler()
    _use_torch()
    close_roads()


def _ignore(nthreads: int) -> None:
    pass


def _use_torch() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5), torch.nn.GELU())
    output = torch.einsum("ij,jk->ik", layer(x), x.softmax(-1)).masked_fill(x > 2, 0)
    output.sum().backward()
    torch.randn(2, generator=torch.Generator().manual_seed(0))
    torch.vmap(torch.dot, in_dims=(None, 0))(x[0].detach(), x.detach())  # registers some operators
