"""Other people's text inside a prompt: cleaned, cut to size, and fenced off as data."""

import secrets
import unicodedata

CUT = "\n[… {count} characters left out …]\n"
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}


def clean_text(text: str) -> str:
    """The text without zero-width, control, private and surrogate characters.

    New lines and tabs stay; every Unicode line break becomes a new line. What a person cannot see
    in the outcome's page must not reach a model either.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(kept for char in _plain_breaks(text) if (kept := _visible(char)))


def _plain_breaks(text: str) -> str:
    for line_break in ("\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"):
        text = text.replace(line_break, "\n")
    return text


def _visible(char: str) -> str:
    if char in "\n\t":
        return char
    # Variation selectors are "Mn", but a run of them can carry a hidden message.
    is_selector = 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF
    return "" if is_selector or unicodedata.category(char) in _INVISIBLE else char


def cut_middle(text: str, limit: int) -> str:
    """At most about `limit` characters: the first and the last part, with a note between them.

    What went wrong usually stands at the end of a trace, what was attempted at its start.
    """
    if len(text) <= limit:
        return text
    head, tail = limit // 3, limit - limit // 3
    return text[:head] + CUT.format(count=len(text) - limit) + text[len(text) - tail :]


def data_block(text: str) -> str:
    """The text between two lines that it cannot contain: their boundary is drawn at random."""
    text, boundary = clean_text(text), secrets.token_hex(8)
    return f"BEGIN DATA {boundary}\n{text}\nEND DATA {boundary}"
