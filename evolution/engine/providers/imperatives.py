"""What a sentence of advice looks like in English: verbs that order, and their past participles."""

import re

# Verbs that hardly ever start a sentence as anything but an order.
_CLEAR = """
absorb accept accompany acknowledge activate adapt add adjust adopt advise aggregate agree align
allow alternate amend analyse analyze annotate announce anonymise anonymize answer apologise
apologize append apply approve arrange ask assemble assert assess assign associate assume attach
attempt authenticate authorise authorize automate avoid await be bear begin bind borrow bring
bypass calculate capture carry cast categorise categorize centralise centralize choose cite
clarify clone collapse collect combine communicate compare compensate compile compose compress
compute concatenate configure confine confirm connect consider consolidate constrain construct
consult contact contain continue convert coordinate create crop cross-check cross-reference
deactivate debounce decide declare decline decompose decouple deduplicate defer define degrade
delegate delete deliver deny depend deploy deprecate derive describe destroy detect determine
develop diagnose differentiate disable discard discuss dismiss distinguish distribute divide do
double-check drop dry-run edit eliminate embed emit emphasise emphasize employ enable enclose
encode encourage encrypt enforce engage enlarge ensure enter enumerate erase escalate establish
estimate evaluate examine exclude execute expand expect expire explain expose express extend
extract favor favour fetch fill find flatten flush follow follow-up forward freeze fuzz gather
generate get give greet grow guarantee harden hide hire hoist honor honour identify ignore
improve include increment infer inform inherit initialise initialize inject inline insert
inspect install intercept interpret interview introduce invalidate invert invest investigate
invite invoke isolate iterate jot justify keep lay learn leave let localise localize locate look
lower lowercase maintain make manage manipulate measure memorise memorize mention merge migrate
mind mitigate monitor multiply mute negotiate nest normalise normalize notify observe obtain
offer omit onboard open opt optimise optimize orchestrate organise organize outline overestimate
override overwrite pad paginate paraphrase parse partition pass perform permit persist pick
populate postpone practise predict prefer prepare preserve presume prevent prioritise prioritize
probe proceed produce profile propagate propose protect prove provide provision prune publish
purge put qualify quantify quit randomise randomize re-read re-run reach react read realise
reassign rebuild receive recheck recognise recognize recommend reconcile reconnect recover
redact redirect reduce refactor refer reflect reformat refresh refuse regenerate register
reimburse reindex reject relate reload rely remember remind remove rename render reset_circuits reorder
repeat replace replicate represent reproduce require reshape resist resize resolve respect
respond restate restore restrict restructure resubmit retain retest retrieve retry return reuse
revert revise revoke rewrite rotate sanitise sanitize sanity-check save scroll seal search
select send separate serialise serialize settle shorten shut simplify simulate skip smoke-test
solve specify spell spend squash stabilise stabilize standardise standardize stay stick stop
store strip submit substitute subtract suggest summarise summarize suppress suspend take tear
tell terminate throttle throw tidy toggle transform translate transpose traverse treat trim
truncate try type-check uncover underline understand undo unify unpack unpin unset unsubscribe
uppercase upsell upvote use validate vary vectorise vectorize verify visualise visualize wait
waive warn weigh white-list whitelist widen withdraw withhold wrap write zip
"""
# These are nouns or stories as often ("Test failed", "Set 3"): the next word has to say more.
_UNCLEAR = """
abstract address alert archive audit back base bill block book boost bound break budget buffer
build bump bundle cache call cancel cap catch chain challenge change check clean clear close
code comment commit complete copy correct correlate count cut date debug decrease delay demand
diff display document double draft draw dump duplicate edge email end escape exchange exercise
exit face factor fail fall feed fence file filter first fix flag focus force fork format frame
free gate grant ground group guard hand handle hash head help highlight hold import increase
index issue join kill label lead limit link lint list load lock log map mark match mirror mock
model mount move name note notice null offset order own patch pause phrase pin pivot place plan
plot point poll pool post practice prefix present price print process program prompt pull push
query question queue quote raise rank rate recall record reference refund release repair replay
reply report request reserve reset restart resume review roll round route run sample scale scan
schedule secure seed segment serve set shape share ship show sign sketch slice snapshot sort
split spot stack stage start state step stream stress structure stub study sum supply support
surface swap sweep switch sync tag talk target test tie time trace track trade transfer trigger
trust turn type update upgrade upload version view visit vote wake walk warm watch work
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
    "bear": "borne",
    "buy": "bought",
    "catch": "caught",
    "draw": "drawn",
    "feed": "fed",
    "freeze": "frozen",
    "grow": "grown",
    "hold": "held",
    "lay": "laid",
    "lead": "led",
    "overwrite": "overwritten",
    "shut": "shut",
    "spend": "spent",
    "tear": "torn",
    "undo": "undone",
    "withdraw": "withdrawn",
    "withhold": "withheld",
    "wake": "woken",
    "quit": "quit",
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

# `Every list needs an upper limit`, `Alerts need an owner`: about a kind of thing, not one of them.
NEED = re.compile(
    r"(?:(?:every|each|all|any|no)\s+[^?,;:]{2,80}?\b"
    r"(?:must|needs?|has to|have to|requires?|belongs?|should)\s|"
    r"(?!(?:yes|this|these|those|users?|customers?|tests)\b)(?:[a-z-]+\s){0,2}[a-z-]{3,}[^su\W]s\s+"
    r"(?:must\s+(?:not\s+)?(?:have|carry|contain|name|start|end|match|stay)|(?:always\s+)?need)\s+"
    r"(?:an?|the|their|at least|one|two|no)\b)",
    re.IGNORECASE,
)
EQUATION = re.compile(
    r"(?:[A-Z][A-Za-z]+|[A-Za-z]+(?:\s[\w()%&/-]+){1,6})\s=\s"
    r"(?=[^;{}=]{5,200}$)[^;{}=]*(?:[-+*/×÷]|\b(?:minus|plus|times|divided by|sum of|share of)\b)"
)
IDEALLY = re.compile(
    rf"ideally,?\s+(?:one|you|we|i)\s+(?:would|should|could)\s+(?:first\s+)?(?={_ANY_VERB})",
    re.IGNORECASE,
)


def reworded(sentence: str) -> str:
    """The order in `Next time, check …`, `It is better to …`, `I should have checked …`.

    Any other sentence comes back as it is.
    """
    if match := _first(sentence):
        sentence = sentence[match.end() :]
    elif (match := HINDSIGHT.match(sentence)) and match["verb"].lower() in BASE:
        verb = BASE[match["verb"].lower()]
        sentence = f"{'do not ' if match['no'] else ''}{verb} {match['rest']}"
    return sentence


def _first(sentence: str) -> re.Match[str] | None:
    """The opening that an order follows, if any."""
    return NEXT_TIME.match(sentence) or BETTER.match(sentence) or IDEALLY.match(sentence)


def is_advice(sentence: str) -> bool:
    """True for an order, a rule about a kind of thing, and a formula."""
    return any(form.match(sentence) for form in (ADVICE, RULE, NEED, EQUATION))
