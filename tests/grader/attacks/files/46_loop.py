"""Never comes to an end. A timeout."""


def double(x):
    while True:
        pass
