"""The worker: the process that runs a student's file and the tests of an order.

Student code can read and change everything in this process. So the worker only sends values and
claims, and the trusted process judges them. Load as little as possible of the grader here.
"""
