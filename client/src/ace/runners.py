"""Commands that test, build or lint, and what a run of one showed.

A run is judged by its summary line, and by the exit status where that status is the run's own:
behind `| tail` or before `; git status` it is not. A run that shows neither is inconclusive.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

OPTIONS = r"(?:-\S+ (?:[^-\s]\S* )??)*?"


@dataclass(frozen=True)
class Runner:
    """`command` matches the words of a command; `failed` and `passed` its summary lines."""

    kind: str
    command: str
    failed: str = ""
    passed: str = ""


@dataclass(frozen=True)
class Run:
    """`passed` is None when neither the summary nor the exit status tells."""

    kind: str
    passed: bool | None


RUNNERS = (
    # Python
    Runner(
        "test",
        r"(?:pytest|py\.test)\b",
        r"\b[1-9]\d* (?:failed|errors?)\b.* in [\d.]+s|^FAILED \S+::|^ERROR \S+(?:::| - )",
        r"\b[1-9]\d* passed\b.* in [\d.]+s",
    ),
    Runner("test", r"unittest\b|(?:python[\d.]* )?\S*manage\.py test\b", r"^FAILED \(", r"^OK\b"),
    Runner("test", r"tox\b", r"evaluation failed", r"congratulations :\)"),
    Runner("test", r"nox\b", r"^nox > .*failed", r"^nox > .*successful"),
    Runner(
        "lint",
        r"ruff (?:check|format .*--check)",
        r"^Found [1-9]\d* errors?",
        r"^All checks passed",
    ),
    Runner("lint", r"(?:mypy|dmypy run)\b", r"^Found \d+ errors?", r"^Success: no issues found"),
    Runner("lint", r"(?:based)?pyright\b", r"\b[1-9]\d* errors?,", r"\b0 errors,"),
    Runner("lint", r"(?:flake8|pylint|bandit|ty check|lint-imports)\b|(?:black|isort) .*--check"),
    Runner("lint", r"pre-commit run\b", r"\.Failed$", r"\.Passed$"),
    Runner("build", r"(?:compileall|py_compile|build)\b"),
    # JavaScript
    Runner(
        "test",
        r"(?:jest|vitest)\b",
        r"^\s*(?:Tests?|Test Files|Test Suites):?\s.*\b[1-9]\d* failed",
        r"^\s*Tests:?\s.*\b[1-9]\d* passed",
    ),
    Runner(
        "test", r"(?:mocha|cypress run|wdio)\b", r"^\s*[1-9]\d* failing", r"^\s*[1-9]\d* passing"
    ),
    Runner("test", r"playwright test\b", r"^\s*[1-9]\d* failed", r"^\s*[1-9]\d* passed"),
    Runner("test", r"node .*--test\b", r"^(?:#|ℹ) fail [1-9]", r"^(?:#|ℹ) pass [1-9]"),
    Runner("test", r"(?:ava|karma start|tap)\b"),
    Runner("test", r"bun test\b", r"^\s*[1-9]\d* fail$", r"^\s*[1-9]\d* pass$"),
    Runner("test", r"deno test\b", r"^FAILED \|", r"^ok \|"),
    Runner("lint", r"eslint\b", r"✖ \d+ problems? \([1-9]"),
    Runner("lint", r"(?:prettier .*(?:--check|-c)|biome (?:check|lint|ci)|stylelint|deno lint)\b"),
    Runner("lint", r"(?:vue-)?tsc .*--noEmit\b", r"error TS\d+"),
    Runner("build", r"(?:vue-)?tsc\b", r"error TS\d+"),
    Runner("build", r"(?:vite|next|nuxt|astro|ng|rollup|webpack|esbuild|parcel) ?(?:build\b|$|-)"),
    # Go, Rust, Java, .NET
    Runner("test", r"(?:go test|gotestsum)\b", r"^(?:FAIL\b|--- FAIL|panic:)", r"^ok\s"),
    Runner("build", r"go (?:build|vet)\b"),
    Runner("lint", r"(?:golangci-lint run|staticcheck|gofmt -l)\b"),
    Runner(
        "test",
        r"cargo (?:\+\S+ )?(?:test|nextest run)\b",
        r"^test result: FAILED|^error(?:\[E\d+\])?:|\b[1-9]\d* failed",
        r"^test result: ok\. [1-9]|\b[1-9]\d* passed",
    ),
    Runner("build", r"cargo (?:\+\S+ )?(?:build|check)\b", r"^error(?:\[E\d+\])?:"),
    Runner("lint", r"cargo (?:\+\S+ )?(?:clippy|fmt .*--check)\b", r"^error(?:\[E\d+\])?:"),
    Runner(
        "test",
        r"mvnw? .*\b(?:test|verify|package|install)\b|gradlew? .*\b(?:\w*[tT]est\w*|check|build)\b",
        r"BUILD FAIL(?:URE|ED)",
        r"BUILD SUCCESS",
    ),
    Runner("build", r"(?:mvnw?|gradlew?) .*\b(?:compile|assemble)\b", r"BUILD FAIL", r"BUILD SUCC"),
    Runner("test", r"dotnet test\b", r"^\s*(?:Failed!|Test Run Failed)", r"Passed!|Test Run Succ"),
    Runner("build", r"dotnet build\b", r"Build FAILED|error CS\d+", r"Build succeeded"),
    # Ruby, PHP, Elixir, Swift, C and C++
    Runner("test", r"rspec\b", r"examples?, [1-9]\d* failures?", r"examples?, 0 failures"),
    Runner(
        "test",
        r"(?:rails|rake) (?:test|spec)\b",
        r"\b[1-9]\d* (?:failures|errors)\b",
        r"\b0 failures, 0 errors",
    ),
    Runner("lint", r"(?:rubocop|standardrb|phpstan|psalm|phpcs|shellcheck|hadolint|yamllint)\b"),
    Runner(
        "test", r"(?:phpunit|pest)\b", r"^(?:FAILURES|ERRORS)!|^\s*Tests:.*\d+ failed", r"^OK \("
    ),
    Runner("test", r"mix test\b", r"\b[1-9]\d* failures?", r"\b0 failures"),
    Runner("test", r"(?:swift test|xcodebuild .*\btest)\b", r"with [1-9]\d* failures?|TEST FAILED"),
    Runner("test", r"ctest\b", r"[1-9]\d* tests failed", r"100% tests passed"),
    Runner("test", r"bazel(?:isk)? test\b", r"\bFAILED\b", r"tests? pass"),
    Runner(
        "build",
        r"(?:cmake .*--build|ninja|bazel(?:isk)? build|swift build|xcodebuild|docker build"
        r"|meson compile)\b",
    ),
)
SCRIPTS = (
    # npm's own `check`, `ci` and `install` are not runs: the first word has to be a script's name.
    ("test", r"(?:\S+[:-])?(?:tests?|t|specs?|e2e|check|verify)(?:[:-]\S+)?(?: |$)"),
    (
        "lint",
        r"(?:\S+[:-])?(?:lint|types?|typecheck|type-check|mypy|format-check)(?:[:-]\S+)?(?: |$)",
    ),
    ("build", r"(?:\S+[:-])?(?:build|compile)(?:[:-]\S+)?(?: |$)"),
)
SCRIPT_PROGRAMS = (
    rf"(?:make|gmake) {OPTIONS}(?:\S+ )*?|(?:just|task|rake|inv|invoke|nx|turbo|composer|deno task)"
    rf" {OPTIONS}(?:run )?|(?:npm|pnpm|yarn|bun) {OPTIONS}(?:run |run-script )?{OPTIONS}"
)
SCRIPT_FAILED = "|".join(
    [r"^g?make(?:\[\d+\])?: \*\*\*", r"^(?:npm ERR!|npm error)", r"ELIFECYCLE"]
    + [runner.failed for runner in RUNNERS if runner.kind == "test" and runner.failed]
)
SCRIPT_PASSED = "|".join(
    runner.passed for runner in RUNNERS if runner.kind == "test" and runner.passed
)

NOT_STARTED = re.compile(
    r"No rule to make target|[Mm]issing script:|python[\d.]*: No module named|^\S*sh: .*not found"
    r"|Command \"\S+\" not found|can't open file|^cd: |: cd: ",
    re.M,
)
NOTHING_RUN = re.compile(
    r"no tests ran|no tests (?:were )?(?:found|collected)|\bRan 0 tests|collected 0 items"
    r"|\[no test files\]|No tests? (?:files? )?(?:found|to run)|running 0 tests|# tests 0"
    r"|^\s*0 passing|Tests: +0 total|\b0 examples, 0 failures",
    re.M | re.I,
)
NO_RUN = {
    "--version",
    "-V",
    "--help",
    "-h",
    "--collect-only",
    "--co",
    "--list",
    "--dry-run",
    "--watch",
}
NOT_STARTED_CODES = {126, 127}
MAX_WORDS = 60
MAX_COMMAND, MAX_OUTPUT = 4000, 20_000
STOPPED_CODES = {124, 130, 137, 143}
HARMLESS = {
    "cd",
    "export",
    "source",
    ".",
    "set",
    "unset",
    "pushd",
    "mkdir",
    "echo",
    "true",
    "tail",
    "head",
    "tee",
    "cat",
}
SHELLS = {"bash", "sh", "zsh", "dash"}
PUNCTUATION = ";&|()<>\n"
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\b", re.S | re.M)
WRAPPERS = re.compile(
    r"(?:(?:\w+=\S*|time|env|nohup|command|exec|then|do|else|\{|sudo|(?:ionice|nice|stdbuf|xvfb-run)"
    r"(?: -\S+(?: \d+)?)*|timeout(?: -\S+(?: \d\S*)?)* [\d.]+[smhd]?"
    r"|(?:uv|poetry|pipenv|hatch|pdm|rye) run(?: --?[a-z]\S*)*|bundle exec"
    r"|(?:npx|bunx|pnpm exec|pnpm dlx|yarn exec|yarn dlx|npm exec)(?: -\S+)*"
    r"|(?:yarn|pnpm)(?= (?:jest|vitest|mocha|eslint|tsc|playwright|vite|next)\b)"
    r"|docker(?: compose|-compose)? (?:exec|run)(?: -\S+)* [^-\s]\S*"
    r"|(?:\S*/)?py(?:thon[\d.]*)?(?:\.exe)?(?: -3[\d.]*)?(?: -[WX]\S* ?\S*| -[a-zB]+)*? -m"
    r"|coverage run(?: -\S+)*? -m)(?: +|$))+"
)


def runs_of(command: str, code: int | None, output: str) -> list[Run]:
    """The runs in a shell command that ended with `code` (None: unknown), in order."""
    steps, output = steps_of(command[:MAX_COMMAND]), output[-MAX_OUTPUT:]
    found: list[Run] = []
    for at, (_, words) in enumerate(steps):
        runner = runner_of(words)
        if runner is None:
            continue
        if code and found and found[-1].passed is False:
            break  # `lint && test`: the second one was not reached
        own_code = code_of_step(steps, at, code, pipefail="pipefail" in command)
        verdict = judge(runner, own_code, output)
        if verdict != "nothing":
            found.append(Run(runner.kind, {"passed": True, "failed": False}.get(verdict)))
    return found


def runner_of(words: str) -> Runner | None:
    """The runner that these words start, or None."""
    words = " ".join(words.split(" ")[:MAX_WORDS])
    start = WRAPPERS.match(words)
    words = re.sub(r"^\S*/(?=\S)", "", words[start.end() :] if start else words)
    words = re.sub(r"^(\S+)\.(?:exe|cmd|bat)(?!\S)", r"\1", words)
    if NO_RUN & set(words.split()):
        return None
    for runner in RUNNERS:
        if re.match(runner.command, words):
            return runner
    for kind, target in SCRIPTS:
        if re.match(f"(?:{SCRIPT_PROGRAMS}){target}", words):
            return Runner(kind, target, SCRIPT_FAILED, SCRIPT_PASSED)
    return (
        Runner("build", "make", SCRIPT_FAILED)
        if re.fullmatch(r"g?make(?: -j\S*)*", words)
        else None
    )


def judge(runner: Runner, code: int | None, output: str) -> str:
    """passed, failed, nothing (nothing was run) or unclear."""
    if code in NOT_STARTED_CODES or NOT_STARTED.search(output):
        return "nothing"
    if code in STOPPED_CODES:
        return "unclear"
    if runner.failed and re.search(runner.failed, output, re.M):
        return "failed"
    passed = bool(runner.passed and re.search(runner.passed, output, re.M))
    if NOTHING_RUN.search(output) and (not passed or "Ran 0 tests" in output):
        return "nothing"
    if code is None:
        return "passed" if passed else "unclear"
    return "failed" if code else "passed"


def code_of_step(
    steps: list[tuple[str, str]], at: int, code: int | None, *, pipefail: bool
) -> int | None:
    """The exit status of one step, when that of the whole command shows it."""
    links = {"&&", "|"} if pipefail else {"&&"}
    if steps[at][0] == "||" or not {operator for operator, _ in steps[at + 1 :]} <= links:
        return None
    if not code:
        return code
    first = at
    while first and steps[first][0] in links:
        first -= 1
    others = [words for _, words in steps[first:at] + steps[at + 1 :]]
    return code if all(words.split(" ")[0] in HARMLESS for words in others) else None


def steps_of(command: str) -> list[tuple[str, str]]:
    """The simple commands in a command line, each after its operator (`&&`, `|`, `;`, …)."""
    text = HEREDOC.sub(r"\3", command).replace("\\\n", " ")
    text = re.sub(r"\\(?=[\w.])", "/", text)  # paths of Windows
    for candidate in (text, re.sub(r"(?:^|(?<=\s))#[^\n]*", "", text)):
        try:
            return list(_steps(candidate))
        except ValueError:  # a quotation without an end
            continue
    return []


def _steps(text: str) -> Iterator[tuple[str, str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=PUNCTUATION)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    words: list[str] = []
    operator, skip = ";", False
    for token in [*lexer, ";"]:
        mark = token.replace("(", "").replace(")", "")
        if skip:
            skip = False
        elif not set(token) <= set(PUNCTUATION):
            words.append(token)
        elif set(mark) & set("<>"):
            skip = True  # where the output goes
        elif mark:
            if words:
                yield from _expand(operator, words)
                operator, words = mark.strip("\n") or ";", []
            if operator == "&":
                yield "&", "true"  # the status is not that of what runs in the background


def _expand(operator: str, words: list[str]) -> Iterator[tuple[str, str]]:
    """A command as one step, or the steps that it gives to a shell."""
    flags = [at for at, word in enumerate(words[:3]) if re.fullmatch(r"-\w*c", word)]
    if words[0].rpartition("/")[2] in SHELLS and flags and len(words) > flags[0] + 1:
        for at, (inner, text) in enumerate(steps_of(words[flags[0] + 1])):
            yield (inner if at else operator, text)
    else:
        yield operator, " ".join(words)
