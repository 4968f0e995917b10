"""The untrusted side: holds one student's module and responds to requests over a socket.

Only a worker runs this, with the student's code in the same process. Whatever it says may be a lie,
because the student's code can change anything in it. So it only describes: values, names, what was
raised. The trusted side decides what follows from that.

Whether it changed tensors that it was given isn't asked: they lie in shared memory. Lists don't; of
these it tells which hold other things than before.

- `serving` shows it from top to bottom: it receives a request, runs the student's code, responds
- `recording` holds a problem's tests and runs them by itself, beside the student's code
- `student_file` runs the student's file, and notes what it tries
- `objects` describes and updates the modules and objects that the trusted side knows
- `exceptions` describes what was raised
- `costs` counts what code costs, also below what code can switch off
- `removal` takes forbidden functions away

What is loaded here, student code can read; so little else of the grader is.
"""
