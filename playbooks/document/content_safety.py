"""Patterns of URLs, commands, credentials and instructions in machine-made text. Pure.

A pattern is no security boundary: a determined author can evade all of them. They lower the
risk that one outcome's text becomes an instruction to every other agent.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable

from core.text import normalize

URL, COMMAND, CREDENTIAL, INSTRUCTION = "url", "command", "credential", "instruction"

Hazard = tuple[str, str]  # (kind, the matched text)

_TLD = (
    "com|net|org|io|dev|app|co|ai|xyz|ru|cn|info|biz|top|site|online|link|click|example|test|onion"
)
_PROGRAM = (
    "git|make|npm|npx|pnpm|yarn|pip3?|pipx|uv|poetry|cargo|go|gem|brew|apt|apt-get|yum|dnf|apk|"
    "docker|podman|kubectl|helm|terraform|ansible|aws|gcloud|az|ssh|scp|rsync|curl|wget|nc|ncat|"
    "netcat|telnet|bash|sh|zsh|fish|powershell|pwsh|cmd|sudo|su|doas|chmod|chown|rm|mv|cp|dd|mkfs|"
    "kill|pkill|killall|systemctl|service|crontab|iptables|mount|find|xargs|sed|awk|grep|cat|tee|"
    "echo|export|source|env|eval|exec|python3?|node|deno|ruby|perl|php|java|psql|mysql|sqlite3|"
    "redis-cli|mongo|openssl|gpg|base64|tar|zip|unzip|pytest|ruff|mypy|tox|manage\\.py"
)
# Countries' and others, of which some end a file's name as well: an address only with a path.
_TLD_WITH_PATH = (
    "de|me|uk|fr|eu|us|ca|in|tv|to|gg|ly|cc|be|nl|es|it|ch|at|pl|jp|kr|br|au|se|no|su|ua|tk|ml|ga|"
    "cf|gq|ws|pw|vip|icu|shop|store|live|cloud|tech|page|run|fun|pro"
)
_SENSITIVE = (
    "secret|passw(?:or)?d|passphrase|credential|token|api[ _-]?key|private key|\\.env|cookie"
)
_LEAVE = (
    r"ignore|disregard|forget|override|overrule|neglect|pay\s+no\s+attention\s+to"
    r"|(?:do\s+not|don't|stop)\s+(?:follow|obey|heed)(?:ing)?"
)

PATTERNS: dict[str, tuple[str, ...]] = {
    URL: (
        r"\b[a-z][a-z0-9+.-]{1,20}://\S*",
        r"\b(?:h[tx]{2}ps?|ftp)\s*:\s*/\s*/?\s*\S*",
        r"\b(?:javascript|vbscript|mailto|data)\s*:\s*[^\s,;]*[/@(;,]\S*",
        r"(?<![\w-])//[a-z0-9-]+\.[a-z0-9.-]+\S*",
        r"\bwww\.\S+",
        rf"(?<![\w.-])(?:[a-z0-9-]{{1,63}}\.){{1,8}}(?:{_TLD})\b(?!\.\w)[/:?#]?\S*",
        rf"(?<![\w./-])(?:[a-z0-9-]{{1,63}}\.){{1,8}}(?:{_TLD_WITH_PATH})/\S*",
        r"\w(?:\[\.\]|\(\.\)|\[dot\]|\(dot\)|\s+(?:dot|\.)\s+"
        r"(?=(?:com|net|org|io|dev|xyz|ru|cn|info|biz|onion|example)\b))\w\S*",
        r"\bcolon\s+slash\s+slash\b|\bfile\s*:\s*/\S*|\blocalhost:\d{2,5}\S*",
        r"(?<!\S)\\\\[\w.-]+\\\S+",
        r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]\d)\S*",
        r"\[[0-9a-f]*:[0-9a-f:]+\](?::\d+)?\S*",
        r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    ),
    COMMAND: (
        rf"[`'\"‘“$>#]\s*(?:sudo\s+)?(?:\./)?(?:{_PROGRAM})\s+[^`'\"\s][^`'\"]*",
        rf"(?<![\w-])(?:{_PROGRAM})(?:\s+[\w./:=@~-]+){{0,4}}\s+--?[a-z][\w-]*",
        r"\b(?:pip3?|npm|pnpm|yarn|brew|apt|apt-get|gem|cargo)\s+(?:install|run|exec|add|publish)\b",
        r"\bgit\s+(?:push|clone|reset|clean|config|checkout|commit|pull|rebase)\b",
        r"\b(?:sudo|curl|wget|npx|kubectl|netcat|powershell|pwsh)\s+\S+",
        r"\bchmod\s+(?:\d{3}|[ugoa]*\+)\S*",
        r"\|\s*(?:ba|z)?sh\b|\|\s*(?:python3?|perl|node|ruby|php)\b",
        r"\$\([a-z][^)]*\)?|\$\{[A-Za-z_]\w*[^}]*\}|\$[A-Z][A-Z_]{2,}\b",
        r"&&\s*\w+|;\s*(?:rm|curl|wget|sh|bash)\b|2>&1|>>?\s*[/~]\S+|/dev/(?:tcp|udp)\S*",
        r"\b(?:eval|exec)\s*\(\s*[^)\s]\S*|\bos\.(?:system|popen)\b|\bsubprocess\.\w+|__import__",
        r"\b(?:invoke-expression|iex|invoke-webrequest|iwr|start-process|remove-item)\b",
        r"\bnpm\s+(?:i|ci)\s+\S+|\bdocker\s+(?:run|exec|pull)\b|\b(?:del|rd|rmdir)\s+/[a-z]\b",
        r"\b(?:ba|z)?sh\s+[\w./-]+\.sh\b|\bpython3?\s+[\w./-]+\.py\b|:\(\)\s*\{",
        r"\b(?:run|execute|source|launch|start|call)\s+[\w./-]*\.(?:sh|ps1|bat|exe|cmd)\b",
    ),
    CREDENTIAL: (
        r"\b(?:ace|sk|rk|pk)[_-](?:live|test|proj|ant|or)?[_-]?[A-Za-z0-9_-]{12,}",
        r"\b(?:gh[pousr]|github_pat|glpat|hf|npm|pypi|whsec|shpat|dop_v1)[_-][A-Za-z0-9_-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}|\bxox[abeprs]-[\w-]{8,}",
        r"\bSG\.[\w-]{10,}\.[\w-]{10,}|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
        r"-----BEGIN[^-]*-----|\bBEGIN [A-Z ]*PRIVATE KEY\b",
        r"(?<![\w.])\d{12,19}(?![\w.])",
        r"\bbearer\s+[\w.~+/=-]{12,}|\bbasic\s+[A-Za-z0-9+/=]{12,}",
        rf"\b(?:{_SENSITIVE})s?\s*(?:is|are|=|:|=>)+\s*[\"'`]?(?=\S*[\d!#$%^&*_-])[^\s\"'`]{{6,}}",
        r"\b[0-9a-f]{32,}\b",
        r"(?i:(?:\b|_)(?:api_?key|access_?token|secret|passw(?:or)?d|passcode|pwd?)"
        r"\s*(?:is|to|=|:)+\s*[\"'`]?(?=\S*\d)(?=\S*[a-z])[^\s\"'`]{8,})",
    ),
    INSTRUCTION: (
        rf"\b(?:{_LEAVE})\b.{{0,40}}\b(?:previous|prior|above|earlier"
        r"|other|all|every|your|these|those)\b.{0,30}\b(?:instruction|rule|advice|guidance|bullet"
        r"|prompt|polic|playbook|safe|message|context)\w*",
        rf"\b(?:{_LEAVE})\b.{{0,40}}\b(?:instruction|rule|guidance|prompt|polic|playbook)\w*\b"
        r".{0,20}\b(?:above|before|earlier|previously|you\s+(?:know|were|have|got))\b",
        r"\bforget\s+everything\b|\bnew\s+(?:system\s+)?instructions?\s*:",
        r"\bfrom\s+now\s+on,?\s+(?:you|always|never|only|answer|respond|act|obey)\b",
        # The same in other languages; accents are gone by now.
        r"\bignor\w*\b.{0,40}\b(?:anterior|precedent|previ[ao]s|vorherig|obig|bisherig|fruher"
        r"|eerder|instruccion|instruco|istruzion|anweisung)\w*",
        r"\b(?:игнориру|забуд)\w*.{0,40}\b(?:предыдущ|инструкц|правил|указан)\w*",
        r"(?:忽略|无视|無視|忘记|忘記).{0,12}(?:指令|指示|规则|規則|说明|提示)|(?:指示|命令|ルール).{0,8}無視",
        r"\b(?:system|developer)\s+(?:prompt|message|instruction)s?\b",
        r"\byou\s+are\s+(?:now|no\s+longer)\b|\bjail\s*break|\bdeveloper\s+mode\b",
        r"\b(?:do\s+not|don't|never|without)\s+(?:tell|inform|mention|notify|ask|alert|report)\w*"
        r"\b.{0,30}\b(?:user|operator|human|owner|person|anyone|anybody|staff|developer"
        r"|reviewer|maintainer|team)s?\b",
        r"\b(?:hide|conceal|keep)\s+(?:this|that|it|these|your)\b.{0,30}\bfrom\s+(?:the\s+|your\s+)?"
        r"(?:user|operator|human|owner|reviewer|person|anyone|staff|developer|team)s?\b",
        r"\bskip\w*\b.{0,30}\b(?:code\s+reviews?|security|approvals?|tls|ssl|certificates?|auth\w*"
        r"|2fa|mfa|audit\w*)\b",
        r"\b(?:turn|switch)\s+(?:\w+\s+){0,3}(?:security|auth\w*|verification|audit\w*|safety|sandbox"
        r"|permissions?|firewall|2fa|mfa)\s+off\b",
        r"(?<!\w)(?:id_(?:rsa|dsa|ecdsa|ed25519)\b|/etc/(?:passwd|shadow|sudoers)\b|~?/?\.ssh/"
        r"|\.aws/credentials|\.netrc\b|\.pgpass\b)",
        r"(?:\\x[0-9a-f]{2}){4}|(?:\\u[0-9a-f]{4}){4}|(?:%[0-9a-f]{2}){4}|(?:&#x?[0-9a-f]{2,6};){4}",
        rf"\b(?:send|post|upload|forward|leak|e-?mail|transmit|exfiltrate|print|reveal|paste|include"
        rf"|append|share)\w*\b.{{0,60}}(?:(?<!\w)(?:{_SENSITIVE})s?\b|environment\s+variable|os\.environ"
        r"|customer\s+data|instructions\b)",
        r"\bexfiltrat\w*",
        r"\b(?:disable|bypass|turn\s+off|circumvent|switch\s+off)\w*\b.{0,40}\b(?:security|auth\w*"
        r"|verification|audit\w*|safety|guardrail|sandbox|permission|firewall|2fa|mfa|tls|ssl"
        r"|certificate)\w*|--no-verify\b",
        r"\balways\s+(?:approve|grant|report\s+success|answer\s+yes|trust)\b",
        r"<\|?/?(?:im_start|im_end|system|assistant|user|instructions?|endoftext|tool)\b[^>]*>?",
        r"\[/?(?:INST|SYS)\]|(?<!#)#{2,}\s*(?:system|instruction)",
        r"\b(?:important|attention|note\s+to)\s+(?:ai|assistant|agent|model|llm|claude|gpt)s?\b",
    ),
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
