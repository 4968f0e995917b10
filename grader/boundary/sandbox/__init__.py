"""What confines a worker on Linux, and the attacks by which that is proved.

A worker puts these layers up in itself before it knows any of the student's code. Nothing here
needs root, namespaces or a container.

- `confine` puts up all layers in their order, and says what this machine lacks for them. Two of
  them are there: limits of memory, CPU seconds, open files and file sizes (rlimits), and, where the
  grader is root, a change to a user that owns nothing
- `landlock`: of the file system only Python's and torch's own files can be opened, for reading
- `seccomp`: an allow-list of system calls; no sockets, no new processes or threads, no signals to
  others
- `libc` asks the kernel for what Python has no function for
- `selftest` attacks a worker and is the only part for the trusted side
"""
