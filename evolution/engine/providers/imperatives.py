"""What a sentence of advice looks like in English: verbs that order, and their past participles."""

import re

# Verbs that hardly ever start a sentence as anything but an order.
_CLEAR = """
accept acknowledge add adjust aggregate agree align allow answer apologise apologize apply
approve ask assert assume attach avoid be begin bind bring calculate capture carry cast choose
cite clarify collect combine compare compute concatenate confirm consider consult contact
convert create cross-check decide decline deduplicate define delete deploy derive describe
detect determine disable discard divide do double-check drop edit enable encode encrypt ensure
escalate estimate exclude execute expect explain express extract fetch fill find follow forward
gather generate get give hide identify ignore include inform inline insert inspect install
introduce invalidate invert invest investigate isolate iterate keep learn leave let locate look
lower make measure merge migrate mind multiply normalise normalize notify obtain offer omit open
override parse pass perform permit pick prefer prepare preserve prevent prioritise prioritize
proceed profile propose protect prove provide publish put re-read re-run reach read rebuild
recheck reconcile redact reduce refactor refer refresh refuse register reject rely remember
remove rename repeat replace reproduce require resolve respect respond restore restrict retry
return reuse revert rewrite rotate sanitise sanitize sanity-check save search select send
separate simplify skip solve specify stay stick stop store strip substitute subtract summarise
summarize take tell throw treat trim try understand unify use validate verify wait warn weigh
wrap write
"""
# These are nouns or stories as often ("Test failed", "Set 3"): the next word has to say more.
_UNCLEAR = """
back block break build cache cancel cap change check close commit copy count document escape
factor fall filter first fix force format group guard handle index join label limit link list
lock log map mark match mock model move name note order own pause pin plan point pool post
prefix print process pull push queue quote raise rank record reply report request reset restart
round route run scale scan schedule seed serve set share show sign sort split stage start state
step stub sum switch sync tag talk test track turn type update upgrade upload walk watch work
"""
_IRREGULAR = {
    "be": "been",
    "begin": "begun",
    "bind": "bound",
    "break": "broken",
    "bring": "brought",
    "build": "built",
    "choose": "chosen",
    "cut": "cut",
    "do": "done",
    "find": "found",
    "get": "got",
    "hide": "hidden",
    "give": "given",
    "keep": "kept",
    "leave": "left",
    "let": "let",
    "make": "made",
    "override": "overridden",
    "prove": "proven",
    "put": "put",
    "read": "read",
    "re-read": "re-read",
    "re-run": "re-run",
    "rewrite": "rewritten",
    "run": "run",
    "send": "sent",
    "set": "set",
    "show": "shown",
    "split": "split",
    "stick": "stuck",
    "take": "taken",
    "tell": "told",
    "throw": "thrown",
    "understand": "understood",
    "write": "written",
}
_DOUBLED = {
    "cap",
    "drop",
    "log",
    "map",
    "omit",
    "pin",
    "plan",
    "refer",
    "skip",
    "stop",
    "strip",
} | {
    *("trim", "wrap"),
}
CLEAR, UNCLEAR = tuple(_CLEAR.split()), tuple(_UNCLEAR.split())


def participle(verb: str) -> str:
    """`checked` for `check`, `run` for `run`."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in _DOUBLED else f"{verb}ed"


BASE = {participle(verb): verb for verb in (*CLEAR, *UNCLEAR)}
"""The verb behind a past participle."""


def _any(words: tuple[str, ...]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


# What does not follow an order: `Use of …`, `Check failed`, `Read 3 files`.
_STORY = (
    r"(?:of|was|is|were|are|has|had|done|ok|came|went|took|\d\S*|"
    r"(?:fail|pass|work|complet|succeed|finish|return|show|look|turn|crash|tim|run)e?d)\b"
)
_OBJECT = (
    r"(?:the|a|an|all|any|each|every|both|only|it|them|this|that|these|those|your|its|their|no|one|two|"
    r"what|which|who|whether|how|why|where|when|if|with|without|before|after|once|at|on|in|out|by|as|to|for|"
    r"from|against|until|percentages|dates|times|names|units|numbers|signs|inputs?|outputs?|errors?|"
    r"changed|new|old|integers|values|results|money)\b|[`'\"]"
)
VERB = rf"(?:(?:{_any(CLEAR)})\b(?!\s+{_STORY})|(?:{_any(UNCLEAR)})\b(?=\s+(?:{_OBJECT})))"
STRONG = r"(?:always|never|avoid|do not|don['’]t|make sure|be sure to)\b"
ORDER = rf"(?:{STRONG}(?!\s+{_STORY})|{VERB})"
CONDITION = (
    r"(?:when|whenever|if|before|after|for|while|unless|instead of|as soon as)\b[^?,]{0,200},"
)
ADVICE = re.compile(rf"(?:{ORDER}|{CONDITION}(?:[^?,]{{0,80}},){{0,2}}\s*{ORDER})", re.IGNORECASE)
_ANY_VERB = rf"(?:{_any((*CLEAR, *UNCLEAR))})\b"
_FIRM = rf"(?:(?:always|never|do not|don['’]t)\s+{_ANY_VERB}|avoid\b|make sure\b)(?!\s+{_STORY})"
FIRM = re.compile(rf"(?:{_FIRM}|{CONDITION}\s*{_FIRM})", re.IGNORECASE)
"""Orders that nobody mistakes for a step of a story."""
NEXT_TIME = re.compile(
    r"(?:(?:the )?next time|in (?:the )?future|from now on|going forward)\s*[,:]?\s+"
    rf"(?:please\s+|to\s+)?(?={ORDER})",
    re.IGNORECASE,
)
HINDSIGHT = re.compile(
    r"(?:in hindsight,?\s+)?(?:i|we|the agent|this agent)\s+should(?P<no>n['’]t|\s+not)?\s+"
    r"(?:(?P<how>always|also|first|at least)\s+)?have\s+(?P<verb>[a-z-]+)\s+(?P<rest>.+)",
    re.IGNORECASE,
)
# A rule about things: `Refunds above 50 must be approved`. Not a guess: `It must be broken`.
_DONE = (
    r"(?!broken|confused|mistaken|related|caused|outdated|cached|fixed|solved|resolved)"
    r"(?:\w+(?:ed|en|wn)|kept|made|set|sent|held|read|run|done|built|put|cut|split|left|unique|sorted)"
)
RULE = re.compile(
    r"(?!(?:i|we|you|he|she|they|it|this|that|there|these|those|what|who|which|my|our)\b)"
    r"[^?,;:]{3,120}?\b(?:(?:must|has to|have to|needs? to)\s+"
    rf"(?:always\s+|never\s+|not\s+|only\s+)?be\s+{_DONE}\b|should\s+(?:always|never|only)\s+be\s+{_DONE}\b|"
    rf"should\s+(?:not\s+)?be\s+{_DONE}\b.{{0,60}}\b(?:before|after|when|whenever|unless|first)\b)",
    re.IGNORECASE,
)


BETTER = re.compile(
    r"(?:in hindsight,?\s+)?(?:it\s+(?:is|would be|would have been)|it['’]s|it['’]d be)\s+"
    rf"(?:much\s+)?(?:better|best|safer|wiser|cleaner)\s+to\s+(?={_ANY_VERB})",
    re.IGNORECASE,
)


def reworded(sentence: str) -> str:
    """The order in `Next time, check …`, `It is better to …`, `I should have checked …`.

    Any other sentence comes back as it is.
    """
    if match := NEXT_TIME.match(sentence) or BETTER.match(sentence):
        sentence = sentence[match.end() :]
    elif (match := HINDSIGHT.match(sentence)) and match["verb"].lower() in BASE:
        verb = BASE[match["verb"].lower()]
        sentence = f"{'do not ' if match['no'] else ''}{verb} {match['rest']}"
    return sentence
