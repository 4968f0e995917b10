"""The worker: the process that runs a student's file and the tests of an order.

Student code can read and change everything in this process. So it sends values and claims, and the
trusted process judges them. Load little else of the grader here.
"""
