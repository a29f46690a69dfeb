"""`python -m benchmarks.token_economics [--write]`: what the loop costs, measured on real prompts.

Counts the prompts that the engine builds at playbooks of 1k, 5k and 15k tokens. No model is called
and no row is read. Prints Markdown.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.token_economics.measurement import tokenizer
from benchmarks.token_economics.report import MODELS, render_report
from benchmarks.token_economics.samples import read_tasks

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = [ROOT / "tests" / "data" / f"{name}.jsonl" for name in ("formula_sample", "finer_sample")]
DOCUMENT = ROOT / "docs" / "engineering" / "TOKEN_ECONOMICS.md"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"into docs/{DOCUMENT.name}")
    parser.add_argument(
        "--dataset",
        type=Path,
        action="append",
        help="JSON Lines with `context` and `target`; may be given again",
    )
    parser.add_argument("--model", action="append", help="to price; may be given again")
    options = parser.parse_args(arguments)
    try:
        sets = {path.stem: read_tasks(path) for path in options.dataset or SAMPLES}
    except (OSError, ValueError) as error:
        sys.exit(f"A data set cannot be read: {error}")
    if not all(sets.values()):
        sys.exit("A data set is empty.")
    text = render_report(sets, tokenizer(), options.model or MODELS)
    if options.write:
        DOCUMENT.write_text(text, encoding="utf-8")
        print(f"{DOCUMENT.name} written")
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
