"""Words that puzzled readers stay out of pages, emails, messages, admin and `--help`."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("accounts", "billing", "config", "core", "evolution", "mcp_bridge", "playbooks")
RETIRED = (
    "Rather not from nothing",
    "does not come up any more",
    "To your playbooks",
    "in so many words",
    "Goes into",
    "Nothing came in",
    "Tried with the real program",
    "How it ended",
    "Known from",
    "Worked with version",
    "What did not, and why",
    "Asked for",
    "Enough outcomes",
    "How it came to be",
    "Said in the report",
    "Keep it as it is",
    "What reads like",
    "lives on by itself",
    "I have kept it",
    "Keep the key",
    "There is no model to ask",
    "begin a line",
    "for whoever helps you",
    "Your password now",
    "look at the marked fields",
    "easy to keep",
    "Calls of models",
    "A letter tells you",
    "The endpoint takes the key",
    "a field that this route does not know",
    "What is wrong today",
    "poison: killed",
    "Worker beats",
    "Seen together, not cause",
    "goes on with --resume",
    "of unknown price",
    "any more",
    "exists already",
    "is there already",
    "a call of list",
    "pass anew",
    "cases added",
    "shared until",
    "In one of ten",
    "With what",
    "of theirs",
)
TEXT = re.compile(
    r"\{#.*?#\}|\{% comment %\}.*?\{% endcomment %\}|#.*?$|\"\"\".*?\"\"\"", re.S | re.M
)


def texts() -> dict[Path, str]:
    """What people may read in each template and module: without comments and docstrings."""
    files = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("templates/**/*.txt")]
    for app in APPS:
        files += (one for one in ROOT.glob(f"{app}/**/*.py") if "migrations" not in one.parts)
    return {one: TEXT.sub("", one.read_text()) for one in files}


def test_no_text_uses_a_retired_word() -> None:
    read = texts()
    assert len(read) > 400
    found = [
        f"{one.relative_to(ROOT)}: {word}"
        for one, text in read.items()
        for word in RETIRED
        if word in text
    ]
    assert found == []
