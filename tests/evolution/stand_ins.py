"""What stands in for a step of the worker."""


def raising(error: Exception) -> object:
    def think(_: object) -> None:
        raise error

    return think
