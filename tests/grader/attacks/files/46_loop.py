"""Never ends. The result is a timeout."""


def double(x):
    while True:
        pass
