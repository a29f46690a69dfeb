"""The arguments of the tools, each with the description that a model reads.

Every word costs tokens in each session of each agent; tests hold the list to a budget.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

MAX_NUMBER = 2_147_483_647
MAX_PAGE_SIZE = 100


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character; send the text without it")
    return text


def _check_positive(number: int) -> int:
    # Not Field(le=…): the bound of a database column would be in the schema that models read.
    if not 1 <= number <= MAX_NUMBER:
        raise ValueError("send a whole number from 1 on")
    return number


def _check_page_size(number: int) -> int:
    if not 1 <= number <= MAX_PAGE_SIZE:
        raise ValueError(f"send a whole number from 1 to {MAX_PAGE_SIZE}")
    return number


def _parse_json_list(value: Any) -> Any:
    """A list from a JSON string: some models send one instead of a list."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


Text = Annotated[str, AfterValidator(_without_nul)]
Number = Annotated[int, AfterValidator(_check_positive)]

PlaybookId = Annotated[Text, Field(description="Its `id`.")]
OptionalPlaybookId = Annotated[Text, Field(description="Its `id`, or use `name`.")]
PlaybookName = Annotated[Text, Field(description="Its name.")]
JobId = Annotated[Text, Field(description="Its `job_id`.")]
Query = Annotated[Text, Field(description="Words to look for.")]
Limit = Annotated[int, AfterValidator(_check_page_size), Field(description="At most 100.")]
Cursor = Annotated[Text, Field(description="Last `next_cursor`.")]
OlderVersion = Annotated[Number, Field(description="To go back to.")]
IncludeStarters = Annotated[bool, Field(description="Starters too.")]
SectionName = Annotated[Text, Field(description="Only this section.")]
AnyVersion = Annotated[Number | None, Field(description="An older version.")]
MaxTokens = Annotated[Number | None, Field(description="Only the most useful bullets that fit.")]
TaskDescription = Annotated[Text, Field(description="The task. At most 4 KB.")]
OutcomeStatus = Annotated[
    Literal["success", "failure", "partial"],
    Field(description="Be honest: failures teach most."),
]
Trace = Annotated[
    Text,
    Field(description="What you did, the errors, what solved them. At most 10 KB."),
]
Notes = Annotated[
    Text,
    Field(description="For next time: causes, missing or wrong advice. At most 2 KB."),
]
CitedBullets = Annotated[
    tuple[Text, ...],
    BeforeValidator(_parse_json_list),
    Field(description='Bullets that you used or that misled you: ["str-00001"].'),
]
ServingId = Annotated[Text, Field(description="`serving_id` from get_playbook, unchanged.")]
Signal = Annotated[
    Literal["ground_truth", "test", "human", "self_report"],
    Field(description="How you know it."),
]
IdempotencyKey = Annotated[Text, Field(description="Unique: a repeated call is stored once.")]
NewName = Annotated[Text, Field(description="At most 120 characters.")]
CloneName = Annotated[Text, Field(description="Of the copy.")]
Description = Annotated[Text, Field(description="For which tasks.")]
