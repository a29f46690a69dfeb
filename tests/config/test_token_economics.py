"""The token economics are measured without a model, and say where they come from."""

from pathlib import Path

import pytest

from benchmarks.token_economics import __main__ as command
from benchmarks.token_economics import measurement, report
from benchmarks.token_economics.growth import measure_growth
from benchmarks.token_economics.measurement import estimate, measure_batch, tokenizer
from benchmarks.token_economics.samples import read_tasks, sample_outcome, sample_playbook
from playbooks.document.text import estimate_tokens, render_for_agents

DATA = Path(__file__).parents[1] / "data" / "formula_sample.jsonl"
TASKS = read_tasks(DATA)


@pytest.mark.parametrize("tokens", [1_000, 5_000, 15_000])
def test_a_made_playbook_has_the_size_asked_for_and_no_bullet_twice(tokens: int) -> None:
    document = sample_playbook(tokens).document
    assert 0.98 * tokens < estimate_tokens(render_for_agents(document)) <= tokens
    assert len({bullet.content for bullet in document.bullets}) == len(document.bullets)


def test_a_made_outcome_cites_bullets_of_the_playbook() -> None:
    playbook = sample_playbook(1_000)
    outcome = sample_outcome(0, TASKS[0], playbook)
    assert set(outcome.cited) <= playbook.document.by_id().keys()
    assert len(outcome.cited) == 3


def test_a_batch_of_five_makes_six_calls_and_cheaper_outcomes() -> None:
    one, five = (measure_batch(TASKS, sample_playbook(5_000), estimate, size=n) for n in (1, 5))
    assert [call.role for call in five.calls] == ["reflector"] * 5 + ["curator"]
    assert five.prompt < 5 * one.prompt * 0.5


def test_the_thousandth_outcome_costs_at_most_half_more_than_the_hundredth() -> None:
    points = {point.outcomes: point for point in measure_growth(TASKS, estimate)}
    assert points[1_000].each <= 1.5 * points[100].each
    assert points[1_000].add_only_each > 5 * points[100].add_only_each


def test_the_tokenizer_counts_as_published() -> None:
    count = tokenizer()
    assert count is not None
    assert (count("hello world"), count("")) == (2, 0)


def test_token_economics_command_writes_the_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "DOCUMENT", tmp_path / "figures.md")
    monkeypatch.setattr(report, "SIZES", (1_000, 5_000))
    command.main(["--write"])
    out = (tmp_path / "figures.md").read_text()
    assert out.startswith("# Token economics\n")
    assert "## A thousand outcomes" in out
    assert "`o200k_base`" in out
    assert "unknown" not in out
    assert "$" not in out


def test_without_a_tokenizer_it_prints_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "tokenizer", lambda: None)
    monkeypatch.setattr(report, "SIZES", (1_000,))
    command.main(["--dataset", str(DATA), "--model", "no-such-model"])
    out = capsys.readouterr().out
    assert "because no tokenizer is installed" in out
    assert "| no-such-model | unknown |" in out


def test_a_missing_package_is_no_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(measurement, "import_module", missing)
    assert tokenizer() is None


def test_the_models_priced_are_in_the_price_list() -> None:
    assert all(report._cost(model, prompt=1, received=1) is not None for model in report.MODELS)


@pytest.mark.parametrize("text", ["", "no json", '{"context": "a"}', "[1]", "7", "null"])
def test_token_economics_command_refuses_what_is_no_data_set(tmp_path: Path, text: str) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(text)
    with pytest.raises(SystemExit, match="data set"):
        command.main(["--dataset", str(bad)])
