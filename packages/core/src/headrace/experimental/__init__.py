"""Parts of the interface that DALI calls experimental."""


def __dir__() -> list[str]:
    return ["dynamic"]
