"""URLs, commands, credentials and instructions in machine-made text (content_safety.toml). Pure.

A pattern is no security boundary: a determined author can evade all of them. They lower the
risk that one outcome's text becomes an instruction to every other agent.
"""

import base64
import binascii
import re
import tomllib
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from core.text import normalize

URL, COMMAND, CREDENTIAL, INSTRUCTION = "url", "command", "credential", "instruction"

Hazard = tuple[str, str]  # (kind, the matched text)

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PATTERNS: dict[str, list[str]] = {
    kind: [re.sub("@([A-Z_]+)@", lambda name: _FILE["words"][name[1]], one) for one in patterns]
    for kind, patterns in _FILE["patterns"].items()
}
_CASED = {CREDENTIAL}
_CAPITAL = re.compile(r"(?<!\\)[A-Z]")
# The others read small letters: to ignore case takes a pattern half as long again.
_COMPILED = {
    kind: tuple(
        re.compile(p if kind in _CASED else _CAPITAL.sub(lambda found: found[0].lower(), p))
        for p in patterns
    )
    for kind, patterns in PATTERNS.items()
}
_LONG_WORD = re.compile(r"(?<![\w/])[A-Za-z0-9+_-]{28,}")
_BASE64 = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/]{16,}={0,2}(?![\w+/=])")
# "i g n o r e": four characters or more, each by itself.
_SPACED = re.compile(r"(?<!\S)(?:\S ){3,}\S(?!\S)")
# Letters that look blank, and marks that pass for others in an address.
_MARKS = str.maketrans("\u115f\u1160\u2800\u3002\u2044\u2215\u2236", "   .//:")
# Arabic phrases of 18 and 8 letters in one character, which would only make the text long.
_PHRASES = str.maketrans("\ufdfa\ufdfb", "  ")
_WORD, _LATIN_LETTER = re.compile(r"\w+"), re.compile("[A-Za-z]")
# Cyrillic, then Greek letters that pass for Latin ones.
_LATIN = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u0442\u043a\u043c\u0432\u043d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406"
    "\u03bf\u03b1\u03b9\u03bd\u03c1\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7",
    "aeopcyxijsdhtkmbhABEKMHOPCTYXIoaivpABEHIKMNOPTX",
)
_LOOSE_SECRETS = tuple(re.compile(p, re.IGNORECASE) for p in PATTERNS[CREDENTIAL][5:7])


def find_hazards(text: str) -> frozenset[Hazard]:
    """Each URL or address, shell command, credential and attempt to instruct agents in `text`.

    Looked at as a reader sees it: compatibility forms, accents and letters of another alphabet in
    a Latin word are folded, what is invisible is left out, s p a c e d words are closed, and what
    is text in base64 is read.
    """
    plain = _plain(text)
    hidden = frozenset((INSTRUCTION, word) for word in _BASE64.findall(plain) if _is_text(word))
    return hidden.union(*map(_search, {plain, _SPACED.sub(_close, plain)}))


def new_hazards(text: str, known: Iterable[str]) -> frozenset[Hazard]:
    """The hazards of `text` that none of the `known` texts has: what a person wrote may stay."""
    found = find_hazards(text)
    return found.difference(*map(find_hazards, known if found else ()))


def _search(plain: str) -> frozenset[Hazard]:
    small = plain.lower()
    found = {
        (kind, plain[slice(*match.span())].strip())
        for kind, patterns in _COMPILED.items()
        for pattern in patterns
        for match in pattern.finditer(plain if kind in _CASED else small)
    }
    loose = {match.group() for pattern in _LOOSE_SECRETS for match in pattern.finditer(plain)}
    loose |= {word for word in _LONG_WORD.findall(plain) if _looks_random(word)}
    return frozenset(found | {(CREDENTIAL, text.strip()) for text in loose})


def _looks_random(word: str) -> bool:
    """Digits, capitals and small letters in one long word: a token rather than a name."""
    kinds = (str.isdigit, str.isupper, str.islower)
    return all(any(map(kind, word)) for kind in kinds)


def _is_text(word: str) -> bool:
    """True for base64 of printable ASCII, which 1 word of 100,000 is by chance."""
    try:
        read = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        return False
    return read.isascii() and read.decode("ascii").isprintable()


def _close(spaced: re.Match[str]) -> str:
    return spaced.group().replace(" ", "")


def _plain(text: str) -> str:
    folded = normalize("NFKD", text.translate(_PHRASES)).translate(_MARKS)
    seen = (
        " " if c.isspace() else c
        for c in folded
        if c.isspace() or unicodedata.category(c) not in {"Cf", "Cc", "Cs", "Mn"}
    )
    return _WORD.sub(_in_one_alphabet, "".join(seen))


def _in_one_alphabet(word: re.Match[str]) -> str:
    letters = word.group()
    return letters.translate(_LATIN) if _LATIN_LETTER.search(letters) else letters
