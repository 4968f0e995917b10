"""The language that the trusted and the untrusted side speak. Both sides run what is here.

A message is one struct of `wire`, as JSON; its tensors lie in memory that both sides see. Nothing
in a message is ever run: no pickle, no class names that are looked up, no attribute names that are
set. Whatever arrives is measured before it is read, and any deviation is a `ProtocolError`.

- `wire` declares all messages, sends and receives them, and is the memory that both sides see
- `codec` writes values into messages and reads them: plain values, tensors, NumPy arrays
- `layers` lists what a module holds
"""
