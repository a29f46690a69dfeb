"""The engine's prompts: Markdown files of a version each, filled by string.Template.

A file starts with `version: 1`, then `=== system` and its text, then `=== user` and its text.
Fixed instructions stand in the system part, so that a provider's prompt cache keeps hitting.
Raise the version whenever the words change; the hash tells a forgotten one.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import Template

from playbooks.document.text import normal_text

MIN_PHRASE = 7
"""Characters from which a phrase of the form is taken for a copy, not for a word of an answer."""
_FIELD = re.compile(r"^ *- `\w+` \([^)]*\): (.*)$", re.MULTILINE)
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

    @cached_property
    def form_phrases(self) -> frozenset[str]:
        """How the prompt describes the fields of an answer: no field may say just that."""
        lines = _FIELD.findall(self.system.rpartition("# Your answer")[2])
        parts = (part for line in lines for part in (line, *re.split(r"[:;,]", line)))
        return frozenset(said for part in parts if len(said := normal_text(part)) > MIN_PHRASE)

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
