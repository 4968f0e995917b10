"""The sandbox for student code.

README.md explains the processes, docs/isolation.md the threats. Import nothing here: a worker
loads this file, too, and must not load code of the trusted process.
"""
