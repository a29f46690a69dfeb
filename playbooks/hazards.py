"""What machine-made advice may not say unreviewed (RELIABILITY R7). Pure.

A pattern is no boundary: a determined author finds words that none of these match. They lower the
risk that one outcome's text becomes an instruction to every other agent.
"""

import re
import unicodedata
from collections.abc import Iterable

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
_SENSITIVE = (
    "secret|passw(?:or)?d|passphrase|credential|token|api[ _-]?key|private key|\\.env|cookie"
)

PATTERNS: dict[str, tuple[str, ...]] = {
    URL: (
        r"\b[a-z][a-z0-9+.-]{1,20}://\S*",
        r"\b(?:h[tx]{2}ps?|ftp)\s*:\s*/\s*/?\s*\S*",
        r"\b(?:javascript|vbscript|mailto|data)\s*:\s*[^\s,;]*[/@(;,]\S*",
        r"(?<![\w-])//[a-z0-9-]+\.[a-z0-9.-]+\S*",
        r"\bwww\.\S+",
        rf"(?<![\w.-])(?:[a-z0-9-]{{1,63}}\.){{1,8}}(?:{_TLD})\b(?!\.\w)[/:?#]?\S*",
        r"\w(?:\[\.\]|\(\.\)|\[dot\]|\(dot\)|\s+dot\s+(?=(?:com|net|org|io)\b))\w\S*",
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
        r"\b(?:invoke-expression|iex|invoke-webrequest|iwr|start-process)\b",
    ),
    CREDENTIAL: (
        r"\b(?:ace|sk|rk|pk)[_-](?:live|test|proj|ant|or)?[_-]?[A-Za-z0-9_-]{12,}",
        r"\b(?:gh[pousr]|github_pat|glpat|hf|npm|pypi|whsec|shpat|dop_v1)[_-][A-Za-z0-9_-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}|\bxox[abeprs]-[\w-]{8,}",
        r"\bSG\.[\w-]{10,}\.[\w-]{10,}|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
        r"-----BEGIN[^-]*-----",
        r"\bbearer\s+[\w.~+/=-]{12,}|\bbasic\s+[A-Za-z0-9+/=]{12,}",
        rf"\b(?:{_SENSITIVE})s?\s*(?:is|are|=|:|=>)+\s*[\"'`]?(?=\S*[\d!#$%^&*_-])[^\s\"'`]{{6,}}",
        r"\b[0-9a-f]{32,}\b",
    ),
    INSTRUCTION: (
        r"\b(?:ignore|disregard|forget|override|overrule)\b.{0,40}\b(?:previous|prior|above|earlier"
        r"|other|all|every|your|these|those)\b.{0,30}\b(?:instruction|rule|advice|guidance|bullet"
        r"|prompt|polic|playbook|safe|message|context)\w*",
        r"\b(?:system|developer)\s+(?:prompt|message|instruction)s?\b",
        r"\byou\s+are\s+(?:now|no\s+longer)\b|\bjail\s*break|\bdeveloper\s+mode\b",
        r"\b(?:do\s+not|don't|never|without)\s+(?:tell|inform|mention|notify|ask|alert|report)\w*"
        r"\b.{0,30}\b(?:user|operator|human|owner|person|anyone|anybody|staff|developer)s?\b",
        rf"\b(?:send|post|upload|forward|leak|e-?mail|transmit|exfiltrate|print|reveal|paste|include"
        rf"|append|share)\w*\b.{{0,60}}(?:\b(?:{_SENSITIVE})s?\b|environment\s+variable"
        r"|customer\s+data|instructions\b)",
        r"\bexfiltrat\w*",
        r"\b(?:disable|bypass|turn\s+off|circumvent|switch\s+off)\w*\b.{0,40}\b(?:security|auth\w*"
        r"|verification|audit\w*|safety|guardrail|sandbox|permission|firewall|2fa|mfa)\w*",
        r"\balways\s+(?:approve|grant|report\s+success|answer\s+yes|trust)\b",
        r"<\|?/?(?:im_start|im_end|system|assistant|user|instructions?|endoftext|tool)\b[^>]*>?",
        r"\[/?(?:INST|SYS)\]|#{2,}\s*(?:system|instruction)",
        r"\b(?:important|attention|note\s+to)\s+(?:ai|assistant|agent|model|llm|claude|gpt)s?\b",
    ),
}
_CASED = {CREDENTIAL}
_COMPILED = {
    kind: tuple(re.compile(p, 0 if kind in _CASED else re.IGNORECASE) for p in patterns)
    for kind, patterns in PATTERNS.items()
}
_LONG_WORD = re.compile(r"(?<![\w/])[A-Za-z0-9+_-]{28,}")
_LOOSE_SECRETS = tuple(re.compile(p, re.IGNORECASE) for p in PATTERNS[CREDENTIAL][5:7])


def find_hazards(text: str) -> frozenset[Hazard]:
    """Each URL or address, shell command, credential and attempt to instruct agents in `text`.

    Compatibility forms are folded first (full-width letters, ligatures), and what is invisible
    is left out, so that neither hides a match.
    """
    plain = _plain(text)
    found = {
        (kind, match.group().strip())
        for kind, patterns in _COMPILED.items()
        for pattern in patterns
        for match in pattern.finditer(plain)
    }
    loose = {match.group() for pattern in _LOOSE_SECRETS for match in pattern.finditer(plain)}
    loose |= {word for word in _LONG_WORD.findall(plain) if _looks_random(word)}
    return frozenset(found | {(CREDENTIAL, text.strip()) for text in loose})


def new_hazards(text: str, known: Iterable[str]) -> frozenset[Hazard]:
    """The hazards of `text` that none of the `known` texts has: what a person wrote may stay."""
    there = {hazard for old in known for hazard in find_hazards(old)}
    return find_hazards(text) - there


def _looks_random(word: str) -> bool:
    """Digits, capitals and small letters in one long word: a token rather than a name."""
    kinds = (str.isdigit, str.isupper, str.islower)
    return all(any(map(kind, word)) for kind in kinds)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text)
    return "".join(c for c in folded if unicodedata.category(c) not in {"Cf", "Cc", "Cs", "Mn"})
