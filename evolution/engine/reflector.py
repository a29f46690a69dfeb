"""Reflector: what one outcome teaches, and how each cited bullet served it."""

from dataclasses import dataclass
from typing import Literal

from evolution.engine.answers import Answer, Text
from evolution.engine.answers import BulletId

Tag = Literal["helpful", "harmful", "neutral"]


class BulletTag(Answer):
    """How one bullet served the outcome."""

    id: BulletId
    tag: Tag


class Reflection(Answer):
    """The Reflector's answer on one outcome (schema `ace_reflection`)."""

    reasoning: Text = ""
    error_identification: Text = ""
    root_cause_analysis: Text = ""
    correct_approach: Text = ""
    key_insight: Text
    bullet_tags: list[BulletTag] = []
    evidence: Text = ""


@dataclass(frozen=True)
class Reflected:
    """A reflection and the tokens it took, over all calls."""

    reflection: Reflection
    tokens: int = 0
