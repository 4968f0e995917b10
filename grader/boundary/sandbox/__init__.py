"""What confines a worker on Linux, and the attacks by which that is proved.

A worker puts these layers up in itself before it knows any of the student's code. Nothing here
needs root, namespaces or a container.

- `confine` puts up all layers in their order, and says what this machine lacks for them
- `resources`: memory, CPU seconds, open files, file sizes (rlimits)
- `landlock`: of the file system only Python's and torch's own files can be opened, for reading
- `seccomp`: an allow-list of system calls; no sockets, no new processes or threads, no signals to
  others
- `user`: where the grader is root, a change to a user that owns nothing
- `libc` asks the kernel for what Python has no function for
- `selftest` attacks a worker and is the only part for the trusted side
"""
