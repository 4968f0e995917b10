"""Never ends. A timeout."""


def double(x):
    while True:
        pass
