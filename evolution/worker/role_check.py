"""What an endpoint can do: the models that it lists, and one real call of each role."""

from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings

from evolution.engine.adaptive_limits import longest_deadline
from evolution.engine.curator import curate
from evolution.engine.generator import generate
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import ChatRequest, LLMError, LLMReply
from evolution.engine.providers.completion_parser import object_of
from evolution.engine.providers.endpoint import DEFAULT_BASE_URL, Endpoint, map_refusal
from evolution.engine.providers.openai import OpenAILLM
from evolution.engine.reflector import Reflection, reflect
from playbooks.document.text import parse

LIST_SECONDS = 15.0
PLAYBOOK = PlaybookInput(
    parse(
        "## FORMULAS & CALCULATIONS\n"
        "[calc-00001] helpful=1 harmful=0 :: Speed is distance divided by time.\n"
    ),
    token_budget=16_000,
)
OUTCOME = OutcomeInput(
    id="check",
    task="A train goes 120 km in 90 minutes. What is its speed in km/h?",
    status="failure",
    trace="120 / 90 = 1.33. Final answer: 1.33 km/h",
    notes="The answer is wrong.\nRight answer: 80",
    signal="ground_truth",
    cited=("calc-00001",),
)


class _Counter:
    """A ledger that only counts tokens: nobody is charged for a check by the operator."""

    tokens = 0

    def begin(self, request: ChatRequest) -> None:
        """A call is about to be made."""

    def finish(self, entry: None, reply: LLMReply, error: str = "") -> None:
        self.tokens += reply.usage.total_tokens


def operator_base_url() -> str:
    return str(settings.OPENAI_BASE_URL or DEFAULT_BASE_URL).rstrip("/")


def list_models(base_url: str) -> set[str] | None:
    """The names of the operator's models; None without such a list. Raises LLMError."""
    endpoint = Endpoint(settings.OPENAI_API_KEY, base_url)
    with endpoint.create("models", {}, LIST_SECONDS) as response:
        if response.raw.status_code == HTTPStatus.NOT_FOUND:
            return None
        if response.is_refusal:
            raise map_refusal(response.refusal())
        rows = object_of(response.body()).get("data")
    if not isinstance(rows, list):
        return None
    return {str(row.get("id")) for row in rows if isinstance(row, dict)}


def check_roles(base_url: str) -> tuple[dict[str, str], int]:
    """By role, empty if its answer fits, else why not; and the tokens of all calls."""
    ledger = _Counter()
    llm = OpenAILLM(
        api_key=settings.OPENAI_API_KEY,
        base_url=base_url,
        deadline=longest_deadline(settings.LLM_DEADLINE_SECONDS),
        ledger=ledger,
        options=settings.ACE_MODEL_OPTIONS,
    )
    lesson = {OUTCOME.id: Reflection(key_insight="Convert minutes to hours before dividing.")}
    asks: dict[str, Callable[[], object]] = {
        "generator": lambda: generate(
            llm,
            settings.ACE_GENERATOR_MODEL,
            sample_id="check",
            task=OUTCOME.task,
            playbook=PLAYBOOK,
        ),
        "reflector": lambda: reflect(llm, settings.ACE_REFLECTOR_MODEL, OUTCOME, PLAYBOOK),
        "curator": lambda: curate(llm, settings.ACE_CURATOR_MODEL, lesson, [OUTCOME], PLAYBOOK),
    }
    found = dict[str, str]()
    for role, ask in asks.items():
        try:
            ask()
            found[role] = ""
        except LLMError as error:
            found[role] = error.message
    return found, ledger.tokens
