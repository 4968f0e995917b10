"""Runs another student's file. It can't be read."""

with open("@FOLDER@/class/ada/01-doubling/problem.py") as file:
    exec(file.read())
