"""The arguments of the tools, each with the description that a model reads.

Every word costs tokens in each session of each agent; tests hold the list to a budget.
"""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from core.text import find_fault

MAX_NUMBER = 2_147_483_647
MAX_PAGE_SIZE = MAX_ITEMS = 100
OUTCOME_WORDS = {
    **dict.fromkeys(("succeeded", "successful", "passed", "pass", "done", "ok"), "success"),
    **dict.fromkeys(("failed", "fail", "error"), "failure"),
    **dict.fromkeys(("partially", "partial_success", "incomplete"), "partial"),
}


def _without_fault(text: str) -> str:
    if fault := find_fault(text):
        raise ValueError(fault)
    return text


def _check_items(value: Any) -> Any:
    if isinstance(value, list) and len(value) > MAX_ITEMS:
        # Before pydantic, which would describe what is wrong with each.
        raise ValueError(f"send at most {MAX_ITEMS} of them")
    return value


def _understand_outcome(value: Any) -> Any:
    word = value.strip().casefold() if isinstance(value, str) else value
    return OUTCOME_WORDS.get(word, word) if isinstance(word, str) else word


Text = Annotated[str, AfterValidator(_without_fault)]
Number = Annotated[int, Field(ge=1, le=MAX_NUMBER)]

PlaybookId = Annotated[Text, Field(description="`id` from list_playbooks.")]
OptionalPlaybookId = Annotated[
    Text, Field(description="`id` from list_playbooks. Send this or `name`.")
]
PlaybookName = Annotated[Text, Field(description='Or its exact name, e.g. "Coding agent".')]
JobId = Annotated[Text, Field(description="`job_id` from trigger_evolution or list_evolutions.")]
OutcomeId = Annotated[
    Text, Field(description="Instead: `outcome_id` from report_outcome, to see what became of it.")
]
PlaybookQuery = Annotated[
    Text,
    Field(
        description="One or two words from the name or description; the closest matches if none has"
        " all. Default: all playbooks."
    ),
]
EvolutionQuery = Annotated[Text, Field(description='Words in status or error, e.g. "failed".')]
VersionQuery = Annotated[Text, Field(description='Words in the reason, e.g. "evolution".')]
PlaybookLimit = Annotated[
    int, Field(ge=1, le=MAX_PAGE_SIZE, description="1 to 100 rows; default 50.")
]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE, description="1 to 100 rows; default 20.")]
Cursor = Annotated[Text, Field(description="`next_cursor` of the previous page.")]
Repository = Annotated[
    Text, Field(description="Name or path of the one you work in: `fits` then marks matches.")
]
OlderVersion = Annotated[Number, Field(description="Number from list_versions.")]
IncludeStarters = Annotated[bool, Field(description="Also list shared starters. Default: true.")]
SectionName = Annotated[
    Text, Field(description='Only this section, e.g. "mistakes". Default: all.')
]
AnyVersion = Annotated[
    Number | None, Field(description="An older version. Default: the current one.")
]
MaxTokens = Annotated[
    Number | None,
    Field(
        description="Budget for the advice, e.g. 2000: best-voted bullets first; `left_out`"
        " counts the rest. Default: none (Codex: 9000)."
    ),
]
ReadTask = Annotated[
    Text, Field(description="What you are about to do: with max_tokens, includes relevant bullets.")
]
TaskKey = Annotated[
    Text,
    Field(description="Your own ID for the task; reading with it again returns the same advice."),
]
TaskDescription = Annotated[
    Text, Field(description="What you were asked to do, in one or two sentences. At most 4 KB.")
]
OutcomeStatus = Annotated[
    Literal["success", "failure", "partial"],
    BeforeValidator(_understand_outcome),
    Field(
        description="success: done and checked. partial: part of it is done or unchecked."
        " failure: not done, or wrong."
    ),
]
Trace = Annotated[
    Text,
    Field(
        description="Key steps, commands, error messages and what solved them; not the whole log."
        " At most 10 KB."
    ),
]
Notes = Annotated[
    Text,
    Field(
        description="What the next agent should know: root cause, which cited bullet helped, which"
        " misled, what advice was missing. At most 2 KB."
    ),
]
Ids = Annotated[tuple[Text, ...], BeforeValidator(_check_items)]
CitedBullets = Annotated[
    Ids, Field(description='Ids of bullets that you used, as a list: ["str-00001", "mis-00010"].')
]
HarmfulBullets = Annotated[Ids, Field(description="Ids of bullets that misled you.")]
ServingId = Annotated[
    Text, Field(description="Copied unchanged from your get_playbook result; leave it out if lost.")
]
Signal = Annotated[
    Literal["ground_truth", "test", "human", "self_report"],
    Field(
        description="How you know the outcome. test: tests or a build ran. ground_truth: checked"
        " against the known answer. human: your user said so. Default self_report: your judgement."
    ),
]
Reference = Annotated[
    Text, Field(description="Commit id or URL of the pull request, for CI to correct the outcome.")
]
CostUsd = Annotated[
    Annotated[Decimal, WithJsonSchema({"type": "number"})] | None,
    Field(description="What the task cost, in US dollars."),
]
IdempotencyKey = Annotated[
    Text, Field(description="Unique to this report, so that a retry is stored once.")
]
NewName = Annotated[
    Text,
    Field(
        description='Short and specific, e.g. "Fixing flaky pytest suites". At most 120 characters.'
    ),
]
CloneName = Annotated[Text, Field(description="Default: the name of the original.")]
NewContent = Annotated[
    Text, Field(description="First advice: a Markdown list, an AGENTS.md or ACE text.")
]
Description = Annotated[
    Text,
    Field(
        description='For which tasks: agents choose by this. E.g. "For fixing CI failures in repo'
        ' web-app".'
    ),
]
