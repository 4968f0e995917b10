"""The untrusted side: holds one student's module and answers requests that arrive over a socket.

Whatever this process says may be a lie, because the student's code can change anything in it. So it
only describes: values, names, what was raised, what was changed. The trusted side decides what
follows from that.

A request says what to `do` ("load", "call", "attribute", "backward"), with which values, in which
state (random numbers, default dtype, whether gradients are wanted), and what can be forgotten.
"""

from __future__ import annotations

import builtins
import importlib.util
import inspect
import io
import linecache
import socket
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from grader.forbidden import removal
from grader.isolation import protocol
from grader.isolation.protocol import FILE, MODULE, STOCK, Header, Packed, Packer, Unpacker

_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc")
_RESULTS_WATCHED = 64
_NAMES_TOLD = 2000
_MOST_PRINTED = 20_000

Answer = tuple[Header, "_Packer"]


def main(connection: socket.socket) -> None:
    """Answer requests until the other side closes the connection."""
    worker = Worker()
    while True:
        try:
            header, tensors = protocol.receive(connection)
        except protocol.Closed:
            return
        answer, tensors = worker.answer(header, tensors)
        try:
            protocol.send(connection, answer, tensors)
        except protocol.Unsendable as reason:
            protocol.send(connection, {"id": header["id"], "unsendable": str(reason)}, [])


class _Printed(io.TextIOBase):
    """What the student's code prints between two answers, cut."""

    def __init__(self) -> None:
        self._text = ""

    def write(self, text: str) -> int:
        """Keep a text."""
        self._text += str(text)[: _MOST_PRINTED - len(self._text)]
        return len(text)

    def take(self) -> str:
        """Return what was printed since the last time."""
        text, self._text = self._text, ""
        return text.encode("utf-8", "replace").decode()


class _Request(Unpacker):
    """The values of one request.

    Attributes:
        tensors: the frame's tensors.
        leaves: the tensors that gradients are asked for.
        given: each tensor as the student's code gets it, and a copy from before.
        generators: random generators among the arguments, and their states from before.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__(tensors)
        self.leaves: list[Tensor] = []
        self.given: list[tuple[Tensor, Tensor]] = []
        self.generators: list[tuple[torch.Generator, Tensor]] = []

    def plain(self, packed: Packed) -> Tensor:
        """Return a tensor that is no argument."""
        tensor: Tensor = protocol.form(packed["m"]) if "m" in packed else super().tensor(packed)
        return tensor

    def tensor(self, packed: Header) -> Tensor:
        """Return a tensor argument; in a graph if the sender's was in one."""
        before = super().tensor(packed)
        # A copy, because a view of the frame could not be told from a view of the student's own.
        tensor = before.clone()
        if packed.get("grad"):
            leaf = tensor.requires_grad_()
            self.leaves.append(leaf)
            with torch.enable_grad():
                tensor = leaf if packed["leaf"] else leaf.clone()
        self.given.append((tensor, before))
        return tensor

    def special(self, packed: Header) -> Any:
        """Return a random generator in the sender's state."""
        if "g" not in packed:
            return super().special(packed)
        state = self.tensors[packed["g"]]
        generator = torch.Generator()
        generator.set_state(state)
        self.generators.append((generator, state))
        return generator


class _Packer(Packer):
    """Writes the student's values: tensors with their place in the graph, modules as descriptions.

    Args:
        keep: takes a module that the trusted side will refer to, and returns its number.

    Attributes:
        outputs: the tensors that a gradient can come back to.
        packed_outputs: what stands for them; among the values they are told by number.
        results: all tensors among the values, with the copies that are sent.
    """

    def __init__(self, keep: Callable[[_Object], int] | None = None) -> None:
        super().__init__()
        self.outputs: list[Tensor] = []
        self.packed_outputs: list[Packed] = []
        self.results: list[tuple[Tensor, Tensor]] = []
        self._keep = keep

    def tensor(self, tensor: Tensor) -> Packed:
        """Add a tensor as a plain one, whatever subclass of Tensor it was."""
        with torch._C.DisableTorchFunctionSubclass():
            plain = tensor if type(tensor) is Tensor else tensor.as_subclass(Tensor)
            packed = super().tensor(plain)
            if "t" in packed:
                packed["r"] = len(self.results)
                copy = self.tensors[packed["t"]] = self.tensors[packed["t"]].clone()
                order = packed.get("order")
                self.results.append((plain, protocol.in_order(copy, order) if order else copy))
            if "m" in packed or not plain.requires_grad:
                return packed
            self.outputs.append(plain)
            self.packed_outputs.append(packed)
            return {"out": len(self.outputs) - 1}

    def plain(self, tensor: Tensor | None) -> Packed:
        """Add a parameter or buffer, which is no result of a call."""
        return None if tensor is None else super().tensor(tensor.detach())

    def other(self, value: object) -> Packed:
        """Describe a module; of anything else name only the type."""
        if isinstance(value, nn.Module) and self._keep is not None:
            thing = _Object(value)
            return {"o": self._keep(thing), "module": thing.describe(self)}
        return {"x": type(value).__name__[: protocol.MAX_NAME], "method": inspect.ismethod(value)}


class _Object:
    """A module of the student's that has a twin on the trusted side."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._known: dict[str, Tensor] = {}
        self._remember()

    def _remember(self) -> None:
        self._known = {name: t.detach().clone() for name, t, _ in protocol.tensors_of(self.module)}

    def _parameters(self) -> dict[str, Tensor]:
        return {
            name: t for name, t, is_parameter in protocol.tensors_of(self.module) if is_parameter
        }

    def describe(self, packer: _Packer) -> Packed:
        """Return the tree of modules with their parameters, buffers and settings."""
        memo: dict[int, Packed] = {}

        def tensor(value: Tensor | None) -> Packed:
            # The same parameter under two names stays one parameter.
            if id(value) not in memo:
                memo[id(value)] = packer.plain(value)
            return memo[id(value)]

        def describe(module: nn.Module, depth: int) -> Packed:
            if depth > protocol.MAX_DEPTH // 4:
                raise protocol.Unsendable("modules within modules, too deep")
            hidden = module._non_persistent_buffers_set
            return {
                "class": type(module).__name__,
                "stock": _stock(module),
                "training": module.training,
                "settings": _settings(module),
                "parameters": [
                    [name, tensor(p), p is not None and p.requires_grad]
                    for name, p in module._parameters.items()
                ],
                "buffers": [[n, tensor(b), n not in hidden] for n, b in module._buffers.items()],
                "children": [
                    [name, None if child is None else describe(child, depth + 1)]
                    for name, child in module._modules.items()
                ],
            }

        return describe(self.module, 0)

    def update(self, state: Header, request: _Request) -> None:
        """Take over what was changed on the trusted side."""
        parameters = self._parameters() if state["tensors"] else {}
        for name, packed, requires_grad in state["tensors"]:
            tensor = request.plain(packed)
            if name in parameters:
                parameters[name].requires_grad_(False)
                parameters[name].data = tensor
                parameters[name].requires_grad_(requires_grad)
            else:
                path, _, last = name.rpartition(".")
                self.module.get_submodule(path)._buffers[last] = tensor
            self._known[name] = tensor.clone()
        for path, training, settings in state["settings"]:
            module = self.module.get_submodule(path)
            module.training = training
            for name, packed in settings:
                setattr(module, name, request.unpack(packed))

    def weights(self, names: list[str]) -> list[Tensor]:
        """Return the named parameters."""
        parameters = self._parameters()
        return [parameters[name] for name in names]

    def changes(self, packer: _Packer) -> Packed:
        """Return the names of parameters that a call changed, and the buffers that it changed."""
        known = self._known
        changed = [
            (name, tensor, is_parameter)
            for name, tensor, is_parameter in protocol.tensors_of(self.module)
            if name not in known or not protocol.same(tensor, known[name])
        ]
        if changed:
            self._remember()
        return {
            "parameters": [name for name, _, is_one in changed if is_one and name in known],
            "buffers": [
                [name, packer.plain(tensor), self._is_persistent(name)]
                for name, tensor, is_parameter in changed
                if not is_parameter
            ],
        }

    def _is_persistent(self, name: str) -> bool:
        path, _, last = name.rpartition(".")
        return last not in self.module.get_submodule(path)._non_persistent_buffers_set


class Worker:
    """One student's module and what it has made so far."""

    def __init__(self) -> None:
        self._module = ModuleType(MODULE)
        self._objects: dict[int, _Object] = {}
        self._graphs: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self._results: dict[int, tuple[Tensor, Tensor]] = {}
        self._count = 0
        self._refused: Callable[[], str | None] = lambda: None
        self._printed: _Printed | None = None
        self._random = torch.get_rng_state()
        self._do = {
            "load": self._load,
            "call": self._call,
            "attribute": self._attribute,
            "backward": self._backward,
        }

    def answer(self, header: Header, tensors: list[Tensor]) -> tuple[Header, list[Tensor]]:
        """Carry out one request and return the answer's header and tensors.

        What the student's code raises is part of the answer.
        """
        for number in header["free"]:
            for kept in (self._objects, self._graphs, self._results):
                kept.pop(number, None)
        answer, packer = self._do[header["do"]](header, _Request(tensors))
        answer["called"] = self._refused()  # also while an answer was written down
        if self._printed is not None:
            answer["printed"] = self._printed.take()
        answer["id"] = header["id"]
        return answer, packer.tensors

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _keep(self, thing: _Object) -> int:
        number = self._number()
        self._objects[number] = thing
        return number

    def _load(self, header: Header, request: _Request) -> Answer:
        source = request.tensors[0].numpy().tobytes()
        self._module.__file__ = FILE
        sys.modules[MODULE] = self._module
        if header.get("capture"):
            self._printed = sys.stdout = sys.stderr = _Printed()
        remove = removal(header["forbidden"])
        answer: Header = {}
        try:
            code = compile(source, FILE, "exec")
            text = importlib.util.decode_source(source)  # compile doesn't look into comments
            # For what reads its own source, as torch.jit.script does.
            linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
            exec(code, self._module.__dict__)
        except BaseException as exception:
            answer["error"] = _describe(exception) | _describe_loading(exception, source)
        # While it is imported a file may compare its own functions with torch's.
        self._refused = remove()
        members = list(vars(self._module).items())
        names = [name for name, value in members if _is_public(name) and callable(value)]
        return answer | {"names": names[-_NAMES_TOLD:]}, _Packer()

    def _call(self, header: Header, request: _Request) -> Answer:
        thing = self._objects.get(header["object"])
        if thing is not None:
            thing.update(header["state"], request)
        owner = self._owner(header)
        # A function is looked up by name; a module of the student's is called itself.
        function = getattr(owner, header["name"]) if header["name"] else owner
        args, kwargs = request.unpack(header["args"]), request.unpack(header["kwargs"])
        leaves = request.leaves + (thing.weights(header["weights"]) if thing else [])
        answer, value = self._run(lambda: function(*args, **kwargs), header, request)
        answer["changed"] = _changed_arguments(function, args, kwargs, request)
        answer["stale"] = any(not protocol.same(t, copy) for t, copy in self._results.values())
        return self._finish(answer, value, thing, leaves)

    def _attribute(self, header: Header, request: _Request) -> Answer:
        thing = self._objects.get(header["object"])
        if thing is not None:
            thing.update(header["state"], request)
        owner = self._owner(header)
        answer, value = self._run(lambda: getattr(owner, header["name"]), header, request)
        return self._finish(answer, value, None, [])

    def _owner(self, header: Header) -> Any:
        thing = self._objects.get(header["object"])
        return self._module if thing is None else thing.module.get_submodule(header["path"])

    def _run(
        self, function: Callable[[], Any], header: Header, request: _Request
    ) -> tuple[Header, Any]:
        """Run the student's code in the state that the request asks for."""
        if header["random"] is not None:  # otherwise it is as before the last call
            self._random = request.tensors[header["random"]].clone()
        torch.set_rng_state(self._random)
        torch.set_default_dtype(protocol.DTYPES[header["dtype"]])
        torch.set_grad_enabled(header["grad"])
        answer, value = _attempt(function)
        torch.set_grad_enabled(True)
        answer["moved"] = not protocol.same(torch.get_rng_state(), self._random)
        answer["generators"] = [
            not protocol.same(generator.get_state(), before)
            for generator, before in request.generators
        ]
        return answer, value

    def _finish(
        self, answer: Header, value: Any, thing: _Object | None, leaves: list[Tensor]
    ) -> Answer:
        """Write down a value, and keep what later requests may refer to."""
        packer = _Packer(self._keep)
        try:
            if "error" not in answer:
                answer["value"] = packer.pack(value)
            if thing is not None:
                answer["state"] = thing.changes(packer)
        except protocol.Unsendable as reason:
            return answer | {"unsendable": str(reason)}, _Packer()
        except BaseException as error:  # a value that fights back when it is looked at
            text = f"a {type(value).__name__} that raises {type(error).__name__}"
            return answer | {"unsendable": text}, _Packer()
        answer["results"] = [self._watch(*result) for result in packer.results]
        if packer.outputs:
            answer["graph"] = self._number()
            answer["outputs"] = packer.packed_outputs
            self._graphs[answer["graph"]] = packer.outputs, leaves
        return answer, packer

    def _watch(self, result: Tensor, copy: Tensor) -> int:
        """Remember a result, to notice when a later call changes it."""
        while len(self._results) >= _RESULTS_WATCHED:
            del self._results[next(iter(self._results))]
        number = self._number()
        self._results[number] = result, copy
        return number

    def _backward(self, header: Header, request: _Request) -> Answer:
        outputs, leaves = self._graphs[header["graph"]]
        upstream = [g if g is None else request.plain(g) for g in header["upstream"]]
        pairs = [(o, g) for o, g in zip(outputs, upstream, strict=True) if g is not None]

        def run() -> Any:
            return torch.autograd.grad(
                [output for output, _ in pairs],
                [leaves[number] for number in header["wanted"]],
                [gradient for _, gradient in pairs],
                retain_graph=True,
                allow_unused=True,
            )

        answer, value = _attempt(run)
        packer = _Packer()
        if "error" not in answer:
            answer["value"] = [packer.plain(gradient) for gradient in value]
        return answer, packer


def _attempt(function: Callable[[], Any]) -> tuple[Header, Any]:
    try:
        return {}, function()
    except BaseException as exception:
        return {"error": _describe(exception)}, None


def _is_public(name: object) -> bool:
    # Through globals() a module may have any key.
    if type(name) is not str or name.startswith("_"):
        return False
    return name.isidentifier() and len(name) <= protocol.MAX_NAME


def _changed_arguments(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], request: _Request
) -> list[tuple[int, str]]:
    """Return the tensor arguments that aren't as they were: which of all, and its name."""
    changed = [i for i, (now, then) in enumerate(request.given) if not protocol.same(now, then)]
    if not changed:
        return []
    named = {str(number): value for number, value in enumerate(args, 1)} | kwargs
    try:
        called = function.forward if isinstance(function, nn.Module) else function
        named = dict(inspect.signature(called).bind(*args, **kwargs).arguments)
    except Exception:
        pass  # the numbers will do
    names = {id(value): name for name, value in named.items()}
    return [(number, names.get(id(request.given[number][0]), "")) for number in changed]


def _stock(module: nn.Module) -> str | None:
    return next((cls.__name__ for cls in type(module).__mro__ if cls in STOCK.values()), None)


def _settings(module: nn.Module) -> Packed:
    """Return the numbers that one of torch's own layers was made with."""
    stock = _stock(module)
    packer = Packer()
    if stock is None:
        return []
    names = getattr(STOCK[stock], "__constants__", [])
    return [[name, packer.pack(getattr(module, name))] for name in names if hasattr(module, name)]


# Exceptions


def _describe(exception: BaseException) -> Header:
    """Return an exception as plain data: its type, its text and its place in the student's file."""
    try:
        text = str(exception)
    except BaseException:
        text = ""
    kind = _builtin(type(exception))
    if kind == "RuntimeError" and any(sign in text for sign in _OUT_OF_MEMORY):
        kind = "MemoryError"
    line, where = _place(exception)
    name = type(exception).__name__[: protocol.MAX_NAME]
    return {
        "kind": kind,
        "name": name,
        "text": text[: protocol.MAX_TEXT],
        "line": line,
        "in": where,
    }


def _builtin(cls: type[BaseException]) -> str:
    for base in cls.__mro__:
        if issubclass(base, Exception) and getattr(builtins, base.__name__, None) is base:
            return str(base.__name__)
    return "RuntimeError"  # SystemExit and the like must not end anything on the other side


def _place(exception: BaseException) -> tuple[int, str]:
    """Return line and function of the innermost frame in the student's file; line 0 if none."""
    found = 0, ""
    for frame, number in traceback.walk_tb(exception.__traceback__):
        if frame.f_globals.get("__name__") == MODULE:
            found = number, frame.f_code.co_qualname
    return found


def _describe_loading(exception: BaseException, source: bytes) -> Header:
    """Return what to add when the file can't be read, rather than stops while it runs."""
    if _place(exception)[0]:
        return {}
    if isinstance(exception, UnicodeDecodeError):
        line = source.count(b"\n", 0, exception.start) + 1
        return {"syntax": [str(exception)[: protocol.MAX_TEXT], line, ""]}
    if isinstance(exception, SyntaxError):
        text = (exception.text or "")[: protocol.MAX_TEXT]
        return {"syntax": [str(exception.msg)[: protocol.MAX_TEXT], exception.lineno or 0, text]}
    return {}
