"""The engine's prompts: Markdown files of a version each, filled by string.Template.

A file starts with `version: 1`, then `=== system` and its text, then `=== user` and its text.
Fixed instructions stand in the system part, so that a provider's prompt cache keeps hitting.
Raise the version whenever the words change; the hash tells a forgotten one.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

_LAYOUT = re.compile(r"version: (\d+)\n=== system\n(.*?)\n*=== user\n(.*)", re.DOTALL)


@dataclass(frozen=True)
class Prompt:
    """One role's prompt. `digest`: SHA-256 of the file, in hex."""

    name: str
    version: str
    digest: str
    system: str
    template: str

    @property
    def label(self) -> str:
        """What a job stores: the version, and enough of the hash to tell two texts apart."""
        return f"{self.version}:{self.digest[:12]}"

    def user(self, **values: str) -> str:
        """The user message; KeyError when a placeholder got no value."""
        return Template(self.template).substitute(values).strip()

    def messages(self, **values: str) -> list[dict[str, str]]:
        """The system message, then the user message filled with the values."""
        return [
            {"role": "system", "content": self.system},
            {"role": "user", "content": self.user(**values)},
        ]


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt in `<name>.md`, read once per process."""
    text = (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8")
    layout = _LAYOUT.fullmatch(text)
    if layout is None:
        raise ValueError(f"{name}.md needs `version: N`, `=== system` and `=== user`.")
    version, system, template = layout.groups()
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Prompt(name, version, digest, Template(system).substitute(version=version), template)
