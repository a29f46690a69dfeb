"""The garbage collector sleeps while a process imports what it needs, and leaves that alone then.

A start makes half a million objects that all stay. Going through them again and again was a fifth
of its time; later each full collection stopped the server for a tenth of a second. What is frozen
also stays shared with processes that are forked from this one.
"""

import gc


def disable_gc() -> None:
    """Collect nothing, until `wake`."""
    gc.disable()


def freeze_and_enable_gc() -> None:
    """Collect as ever, but leave what is there by now alone."""
    gc.freeze()
    gc.enable()
