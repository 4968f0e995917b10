"""The sandbox for student code.

README.md explains the processes, docs/isolation.md what they protect against. Import nothing here:
a worker loads this file, too, and must not load the trusted side.
"""
