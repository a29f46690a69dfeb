"""Playbooks for AI agents: read the advice before a task, report the outcome after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ace.tasks import Task, learn
    from ace.tasks import Task as task

__all__ = ["Task", "learn", "task"]


def __getattr__(name: str) -> Any:
    """The library, imported when it is used: hooks have a second and need none of it."""
    if name not in __all__:
        raise AttributeError(name)
    from ace import tasks  # noqa: PLC0415 - see above

    return tasks.Task if name == "task" else getattr(tasks, name)
