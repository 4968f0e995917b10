"""Remove forbidden functions from a worker, permanently and before student code runs.

- Each forbidden operator of torch gets a kernel that raises ForbiddenCall, under every dispatch key
  for which the operator had a kernel. So the operator is refused in all threads, on all devices,
  below all of torch's modes, and for code that chooses the key explicitly. The library object that
  registers these kernels is kept alive without a reference in Python, so student code can't find
  the object and restore the original kernels.
- Forbidden functions of torch that are written in Python get code that raises ForbiddenCall, under
  all their names.
- Functions that reach kernels without the dispatcher (`ROADS`) are removed.
- If autograd is forbidden, no operator records anything (`_record_nothing`), so nothing can be
  differentiated.

`refuse_later` removes forbidden functions from parts of torch that are loaded later, and refuses
ctypes, which can call functions by their address.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType
from typing import Any

import torch

from grader.code.forbidden import (
    TORCH,
    ForbiddenCall,
    ForbiddenNames,
    forbidden_code,
    functions_of_torch,
    modules_of_torch,
    refuse,
)

ROADS = (
    ("_C", "_dispatch_get_computed_kernel_for_dispatch_key"),  # returns a kernel
    ("_C", "_jit_to_static_module"),  # calls kernels without the dispatcher
    ("_C", "_fuse_to_static_module"),
    ("_C._te", "lower"),  # has separate formulas
    ("_C._te", "TensorExprKernel"),
    ("_C._lazy_ts_backend", "_init"),  # a device whose operators are run elsewhere
    # Functions that enable or run compilers, which fuse several operators of TorchScript
    ("_C", "_jit_set_llga_enabled"),
    ("_C", "_jit_set_texpr_fuser_enabled"),
    ("_C", "_jit_override_can_fuse_on_cpu"),
    ("_C", "_jit_override_can_fuse_on_cpu_legacy"),
    ("_C", "_jit_set_te_must_use_llvm_cpu"),
    ("_C", "_jit_pass_fuse"),
    ("_C", "_jit_pass_fuse_tensorexprs"),
    ("_C", "_jit_pass_convert_frozen_ops_to_mkldnn"),
    ("_C", "_jit_pass_optimize_for_inference"),
    # Functions for graphs of TorchScript. A graph can contain fused operators; source code can't.
    ("_C", "parse_ir"),
    ("", "parse_ir"),
    ("_C", "_create_function_from_graph"),
    ("_C", "_jit_interpret_graph"),
    ("_C.Graph", "create"),
    ("_C.Graph", "createFusionGroup"),
    ("_C.Node", "g_"),
    ("_C.Node", "gs_"),
)
"""Functions that reach kernels without the dispatcher: pairs of a path inside torch and a name.

Not every version of torch has all of them.
"""


_COMPILERS = ("_jit_set_llga_enabled", "_jit_set_texpr_fuser_enabled")


def close_roads() -> None:
    """Remove the functions of `ROADS` from this process and its forks."""
    for name in _COMPILERS:
        switch: Any = getattr(torch._C, name, None)
        if switch is not None:
            switch(False)
    for path, name in ROADS:
        owner: Any = torch
        for part in filter(None, path.split(".")):
            owner = getattr(owner, part, None)
        if hasattr(owner, name):
            delattr(owner, name)
            exported = getattr(owner, "__all__", [])
            if name in exported:  # else `from torch import *` fails
                exported.remove(name)


Operators = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of operators, each with the dispatch keys of its kernels."""


def removable() -> tuple[Operators, tuple[FunctionType, ...]]:
    """Return the operators and the functions written in Python that `remove` can remove.

    The result is cached until torch loads more modules. The first call takes a tenth of a second,
    so a process should call this function before it forks.
    """
    return _removable(modules_of_torch())


@functools.lru_cache(1)
def _removable(modules: int) -> tuple[Operators, tuple[FunctionType, ...]]:
    forbidden_names = ForbiddenNames()
    return _operators(forbidden_names), functions_of_torch(forbidden_names)


def _operators(forbidden_names: ForbiddenNames) -> Operators:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    found = {
        name: ["CPU"] for name in torch._C._dispatch_get_all_op_names() if forbidden_names[name]
    }
    for key in _dispatch_keys():
        for name in found.keys() & {*registered(key)}:
            found[name].append(key)
    return tuple((name, tuple(keys)) for name, keys in found.items())


def _dispatch_keys() -> list[str]:
    names = [str(name) for name in torch._C.DispatchKey.__members__]
    return [name for name in names if name != "CPU" and _is_key(name)]


def _is_key(name: str) -> bool:
    """Return whether a dispatch key can have kernels.

    Some keys only mark the end of a range of keys.
    """
    try:
        torch._C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", name)
    except RuntimeError:
        return False
    return name not in ("Undefined", "CatchAll")


def remove(names: Iterable[str], called: list[str]) -> None:
    """Remove the forbidden functions from this process.

    Args:
        names: the forbidden functions, as for `code.forbidden.Guard`.
        called: the list that receives the name of the first forbidden function that is called.
            Student code can change this list, so do not rely on the name.
    """
    forbidden_names = ForbiddenNames(names)
    if not forbidden_names.traces:
        return
    operators, functions = removable()
    _replace_kernels(operators, forbidden_names, called)
    for function in functions:
        forbidden = forbidden_code(forbidden_names, function.__code__)
        if forbidden is not None:
            refuse(function, _refusal(forbidden, called))
    if "autograd" in forbidden_names.traces.values():
        _record_nothing()
        _refuse_in_c(_refusal("autograd", called))


def _replace_kernels(
    operators: Operators, forbidden_names: ForbiddenNames, called: list[str]
) -> None:
    found = [(name, keys, forbidden_names[name]) for name, keys in operators]
    refused = [(name, keys, forbidden) for name, keys, forbidden in found if forbidden is not None]
    spaces = {name.partition("::")[0] for name, _, _ in refused}
    libraries = {space: _library(space) for space in spaces}
    with warnings.catch_warnings():  # torch warns of a kernel that is replaced
        warnings.simplefilter("ignore")
        for name, keys, forbidden in refused:
            space, _, rest = name.partition("::")
            for key in keys:
                libraries[space].impl(rest, key, _refusal(forbidden, called), False)


def _record_nothing() -> None:
    """Replace all kernels of autograd with fallthrough kernels.

    The replaced kernels contain all formulas of reverse and forward mode, and torch.func calls
    them, too. TorchScript has other formulas, which it uses only when it optimizes, so its
    optimization is switched off.
    """
    torch._C._set_graph_executor_optimize(False)
    libraries: dict[str, Any] = {}
    for key in _dispatch_keys():
        names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
        for name in names if key.startswith("Autograd") else ():
            space, _, rest = name.partition("::")
            libraries[space] = libraries.get(space) or _library(space)
            libraries[space].impl(rest, key, torch.library.fallthrough_kernel, False)


_IN_C = (
    *("run_backward", "_grad_increment_nesting", "_jvp_increment_nesting", "_enter_dual_level"),
    *("retain_grad", "_jit_differentiate", "_jit_pass_create_autodiff_subgraphs"),
    *("_set_graph_executor_optimize", "_jit_set_profiling_executor", "_jit_set_profiling_mode"),
)
"""Functions written in C that start autograd or let TorchScript compute derivatives."""


def _refuse_in_c(refusal: Callable[..., Any]) -> None:
    """Replace the functions in `_IN_C` with a refusal, in every module and type that has them."""
    gc.unfreeze()  # frozen objects would not be found
    found = [o for o in gc.get_objects() if type(o) in _C_FUNCTIONS and o.__name__ in _IN_C]
    numbers = {id(function) for function in found}
    for owner in gc.get_referrers(*found):
        if type(owner) is dict:
            owner.update({name: refusal for name, o in owner.items() if id(o) in numbers})
    for changed in (torch._C._ImperativeEngine, torch._C.TensorBase):
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(changed))


_C_FUNCTIONS = (BuiltinFunctionType, MethodDescriptorType)


def _library(space: str) -> Any:
    library = torch._C._dispatch_library("IMPL", space, "", __file__, 0)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # freeing it would remove its kernels
    return library


def _refusal(forbidden: str, called: list[str]) -> Callable[..., Any]:
    def refusal(*args: Any, **kwargs: Any) -> Any:
        called[:] = called or [forbidden]
        raise ForbiddenCall(forbidden)

    return refusal


# Refusals by Python's audit hooks

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def refuse_later(names: Iterable[str], called: list[str]) -> None:
    """Install an audit hook that refuses actions that would restore a forbidden function.

    An audit hook can't be removed. This hook refuses these actions:

    - running code of torch that is loaded later and defines a forbidden function
    - creating a function from such code, or assigning such code to another function
    - using ctypes, which can call functions by their address, below Python and torch's dispatcher
    - changing the code of this package's functions, such as the hook itself

    Args:
        names: the forbidden functions, as for `code.forbidden.Guard`. If there are none, nothing is
            refused.
        called: the list that receives the name of the first forbidden function that is called.
    """
    forbidden_names = ForbiddenNames(names)
    if not forbidden_names.traces:
        return
    traces, folders = tuple(forbidden_names.traces.items()), tuple(forbidden_names.folders.items())
    _hook.__defaults__ = (traces, folders, called, *_KNOWN)
    sys.addaudithook(_hook)


_KNOWN = (TORCH, _PACKAGE, type, CodeType, FunctionType, ForbiddenCall, PermissionError)


def _hook(
    event: str,
    args: tuple[Any, ...],
    traces: Any = (),
    folders: Any = (),
    called: Any = None,
    torch: Any = "",
    package: Any = "",
    type: Any = None,
    code_type: Any = None,
    function_type: Any = None,
    forbidden_call: Any = None,
    refused: Any = None,
) -> None:
    # Student code may replace every name that Python looks up in a module, built-in ones as well.
    # So this function uses only operators, methods of built-in types, and its default arguments.
    if event.startswith("ctypes."):
        raise refused("ctypes can't be used here")
    if event == "object.__setattr__":
        changed, _, code = args
        if type(changed) is function_type and changed.__code__.co_filename.startswith(package):
            raise refused("this function can't be changed")
    elif event == "exec" or event == "function.__new__":
        code = args[0]
    else:
        return
    found = [code]
    for code in found:  # including nested code
        if type(code) is code_type and code.co_filename.startswith(torch):
            found.extend(code.co_consts)
            name = code.co_qualname.lower()
            why = [forbidden for trace, forbidden in traces if trace in name]
            why += [forbidden for folder, forbidden in folders if folder in code.co_filename]
            for forbidden in why:
                called[:] = called or [forbidden]
                raise forbidden_call(forbidden)
