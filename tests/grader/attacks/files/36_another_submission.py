"""Tries to run another student's file. The file can't be read."""

with open("@FOLDER@/class/ada/01-doubling/problem.py") as file:
    exec(file.read())
