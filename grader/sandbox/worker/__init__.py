"""The worker's side: runs a student's file and the tests of an order in one process.

Student code can read and change everything in this process. So it sends values and claims, and the
trusted side decides what follows from them. Load little else of the grader here.
"""
