"""Which commands test, build or lint, and what a run of one showed."""

import time

import pytest

from ace.runners import RUNNERS, runner_of, runs_of

PASSED, FAILED, UNCLEAR, NOTHING = "passed", "failed", "unclear", "nothing"
# command, exit status, output, what it showed
CASES = [
    ("pytest -q", 0, "12 passed in 1.02s", PASSED),
    ("pytest -q", 1, "3 failed, 9 passed in 1.02s", FAILED),
    ("pytest -n 4", 0, "", PASSED),
    ("pytest", 5, "no tests ran in 0.01s", NOTHING),
    ("pytest", 2, "ERROR tests/test_a.py - ImportError\n1 error in 0.1s", FAILED),
    ("pytest", 0, "2 passed, 1 xfailed in 0.10s", PASSED),
    ("pytest --collect-only", 0, "12 tests collected", NOTHING),
    ("pytest", 127, "bash: pytest: command not found", NOTHING),
    ("python -m pytest", 1, "/usr/bin/python: No module named pytest", NOTHING),
    ("timeout 5 pytest", 124, "", UNCLEAR),
    (r".venv\Scripts\python.exe -m pytest", 1, "1 failed in 0.10s", FAILED),
    (r"py -3.12 -m pytest | Out-Host", 0, "3 passed in 0.10s", PASSED),
    (r".\gradlew.bat test", 0, "BUILD SUCCESSFUL", PASSED),
    ("npm.cmd test", 1, "npm error Test failed.", FAILED),
    ("python3 -m unittest", 1, "Ran 3 tests in 0.1s\n\nFAILED (failures=1)", FAILED),
    ("python3 -m unittest", 0, "Ran 0 tests in 0.0s\n\nOK", NOTHING),
    ("python manage.py test", 0, "Ran 3 tests in 0.1s\n\nOK", PASSED),
    ("tox -e py312 | tail -1", 0, "congratulations :)", PASSED),
    ("npm test", 1, "npm error Test failed.", FAILED),
    ("npm test", 1, 'npm error Missing script: "test"', NOTHING),
    ("npm run test:unit -- --ci", 0, "", PASSED),
    ("npm t", 0, "", PASSED),
    ("npm ci", 0, "added 3 packages", NOTHING),
    ("npm install --save-dev test-lib", 0, "", NOTHING),
    ("npx vitest run", 1, " Tests  1 failed | 2 passed (3)", FAILED),
    ("npx jest 2>&1 | tail -6", 0, "Tests:       4 passed, 4 total", PASSED),
    ("yarn jest | cat", 0, "Tests:       1 failed, 3 passed, 4 total", FAILED),
    ("npx mocha | cat", 0, "  3 passing (5ms)\n  1 failing", FAILED),
    ("node --test", 1, "# pass 1\n# fail 2", FAILED),
    ("go test ./... | tail", 0, "ok  \texample.org/a\t0.1s", PASSED),
    ("go test ./...", 1, "--- FAIL: TestA\nFAIL", FAILED),
    ("go test ./... | cat", 0, "?   \texample.org/a\t[no test files]", NOTHING),
    ("cargo test", 101, "error[E0425]: cannot find value", FAILED),
    ("cargo test | tail", 0, "test result: ok. 3 passed; 0 failed", PASSED),
    ("mvn -q test", 1, "[INFO] BUILD FAILURE", FAILED),
    ("./gradlew :app:testDebug", 0, "BUILD SUCCESSFUL", PASSED),
    ("dotnet test | cat", 0, "Failed!  - Failed: 1, Passed: 3", FAILED),
    ("bundle exec rspec | cat", 0, "3 examples, 0 failures", PASSED),
    ("bin/rails test | cat", 0, "3 runs, 4 assertions, 1 failures, 0 errors", FAILED),
    ("vendor/bin/phpunit | cat", 0, "OK (3 tests, 4 assertions)", PASSED),
    ("mix test | cat", 0, "3 tests, 1 failure", FAILED),
    ("ctest | cat", 0, "100% tests passed, 0 tests failed out of 3", PASSED),
    ("make test", 2, "make: *** [Makefile:3: test] Error 1", FAILED),
    ("make test", 2, "make: *** No rule to make target 'test'.  Stop.", NOTHING),
    ("make -C app -j4 lint test", 0, "", PASSED),
    ("make run", 0, "", NOTHING),
    ("ruff check . | head", 0, "Found 2 errors.", FAILED),
    ("mypy . | tail -1", 0, "Success: no issues found in 3 source files", PASSED),
    ("npx eslint . | tail", 0, "✖ 3 problems (1 error, 2 warnings)", FAILED),
    ("npx tsc --noEmit | head", 0, "a.ts(1,2): error TS2304: Cannot find name", FAILED),
    # where the exit status is another command's
    ("pytest && git status", 0, "", PASSED),
    ("cd app && pytest", 1, "", FAILED),
    ("cd nowhere && pytest", 1, "bash: line 1: cd: nowhere: No such file or directory", NOTHING),
    ("pytest; git --version", 0, "git version 2.47", UNCLEAR),
    ("pytest; echo $?", 0, "1 failed in 0.10s\n1", FAILED),
    ("pytest || true", 0, "", UNCLEAR),
    ("pytest > log 2>&1 &", 0, "", UNCLEAR),
    ("pytest | grep -c zzz", 1, "0", UNCLEAR),
    ("set -o pipefail; pytest | tail", 1, "", FAILED),
    ("./deploy.sh && pytest", 1, "", UNCLEAR),
    ("! pytest", 0, "", NOTHING),
    ("bash -lc 'cd app && FOO=1 uv run pytest'", 1, "", FAILED),
    ("docker compose exec -T web pytest", 1, "", FAILED),
    # no run at all
    ("git --version", 0, "git version 2.47", NOTHING),
    ("grep -rn pytest .", 1, "", NOTHING),
    ("echo '12 passed in 1.0s'", 0, "12 passed in 1.0s", NOTHING),
    ("cat > run.sh <<'EOF'\npytest\nEOF\nchmod +x run.sh", 0, "", NOTHING),
    ("# don't\npytest", 0, "", PASSED),
    ("pytest 'unclosed", 0, "", NOTHING),
]


@pytest.mark.parametrize(("command", "code", "output", "shown"), CASES)
def test_what_a_command_showed(command: str, code: int, output: str, shown: str) -> None:
    runs = runs_of(command, code, output)
    words = {True: PASSED, False: FAILED, None: UNCLEAR}
    assert (words[runs[-1].passed] if runs else NOTHING) == shown


def test_a_failed_chain_is_judged_by_what_failed() -> None:
    runs = runs_of("ruff check . && mypy . && pytest", 1, "Found 2 errors.")
    assert [(run.kind, run.passed) for run in runs] == [("lint", False)]
    runs = runs_of("ruff check . && pytest -q", 1, "1 failed in 0.10s")
    assert runs[-1].passed is False
    assert runs[-1].kind == "test"


def test_every_runner_is_a_test_a_build_or_lint() -> None:
    assert {runner.kind for runner in RUNNERS} == {"test", "build", "lint"}
    assert runner_of("git commit -m 'make test pass'") is None


@pytest.mark.parametrize(
    "text",
    ["make " + "a " * 2000, "npm " + "-a b " * 800, "A=1 " * 1000, "(" * 4000, "timeout -k "],
)
def test_no_command_keeps_a_hook_busy(text: str) -> None:
    began = time.process_time()
    runs_of(text, 1, "1 failed " * 2000)
    assert time.process_time() - began < 1
