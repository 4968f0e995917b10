"""The untrusted side: holds one student's module and answers requests that arrive over a socket.

Only a worker runs this, with the student's code in the same process. Whatever it says may be a lie,
because the student's code can change anything in it. So it only describes: values, names, what was
raised. The trusted side decides what follows from that.

Whether it changed tensors that it was given isn't asked: they lie in shared memory. Lists don't; of
these it tells which hold other things than before.

A request says what to `do` ("load", "call", "attribute", "parameters", "backward"), with which
values, in which state (random numbers, default dtype, whether gradients are wanted), and what can
be forgotten.

- `serving` is the main loop
- `requests` carries out what is asked
- `kept` has what later requests may refer to
- `random_state` sets the state of random generators, and tells whether it moved
- `costs` counts what code costs
- `spawned` starts that where there is no fork server
- `inbox` makes tensors of what lies in the shared memory
- `loading` runs the student's file
- `values` reads what a request brings and writes what an answer tells
- `objects` keeps the modules that the trusted side knows
- `graphs` takes gradients, when they are asked for or come with a call
- `handles` tells of objects that the trusted side may hand back
- `products` counts products of matrices below what code can switch off
- `attempts` hears what the file tries while it is loaded
- `exceptions` describes what was raised
- `output` keeps what was printed

All of it stands on `grader.isolation.protocol`, `grader.cost`, `grader.forbidden`,
`grader.operands` and `grader.unwritten` only: what is loaded here, student code can read.
"""
