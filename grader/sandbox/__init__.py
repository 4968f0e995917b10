"""The sandbox for student code.

README.md explains the processes, and docs/isolation.md explains the threats. Import nothing in this
file: a worker loads it, too, and must not load code of the trusted process.
"""
