"""The trusted side's `problem`: acts like the student's module, whose code runs in a worker.

The process with the tests runs this; a worker never loads it. What a test may do is the subset of
PyTorch that ../README.md lists: call functions with tensors and plain values, make modules,
read and set their parameters and buffers, call them, move them to another dtype, take gradients.
Anything else is refused with a TypeError that says so.

Three rules keep a worker from cheating. Nothing that a test holds ever takes values from a worker
afterwards: a changed argument is marked, a changed weight is an error, and random states are moved
on by this side itself. No module of the student's runs on this side, not even if it is one of
torch's own layers. And what arrives is only ever read as plain data (see `protocol`); what can't be
read so is `bad_output`.

- `caller` is what tests see first, the module and its functions, and shows how a call goes: pack,
  send, receive, unpack
- `modules` are the student's modules, each with what its worker knows of it
- `stand_ins` stand for what stays in the worker
- `autograd` makes a call a part of this side's graph
- `endings` reads how a request ended
"""
