# Every target works in a fresh clone: whatever it needs is installed into .venv first.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help install serve demo test test-stack test-pages test-slow test-typed test-docker test-gpu test-all coverage docs docs-test chaos fuzz soak check format bench bench-compare bench-gpu overload hostile lifecycle bench-peers bench-tables bench-series quality verify-statistics stack release stack-key stack-down test-engines lock audit licences sbom

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(INSTALLED)  ## Create .venv with the pinned versions

$(INSTALLED): requirements.lock docker/build.lock pyproject.toml credence/pyproject.toml credence/scoring/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	@# A build of torch in a folder that pip's settings name (find-links); else the index has one.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--no-index -r docker/torch.lock 2>/dev/null || true
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		-r docker/build.lock -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat --editable ./credence/scoring --editable .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--editable ./credence
	@touch $@

serve: $(INSTALLED)  ## API and one worker on http://127.0.0.1:8000
	$(BIN)/credence serve

demo: $(INSTALLED)  ## Train on real data, predict with uncertainty, draw pictures: 2 minutes
	$(BIN)/python -m examples.demo

# One thread per process: two test processes share the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet -rs
PARALLEL := --numprocesses 2 --dist loadfile
REPORT = $(if $(JUNIT),--junitxml $(JUNIT))
APART := stack or pages or slow or timing or docker or engines or gpu

test: $(INSTALLED)  ## The gate: all that needs no processes of its own, no browser and no long simulation; 7 minutes
	$(PYTEST) tests -m "not ($(APART))" $(PARALLEL) $(REPORT) $(COVERAGE)

test-stack: $(INSTALLED)  ## Workers, commands, databases, brokers, overload, and what only a clock shows; 20 minutes
	$(PYTEST) docs/python.md docs/how-to/text.md tests -m "(stack or timing) and not pages" $(REPORT)

test-pages: $(INSTALLED)  ## The dashboard in Chromium; 2 minutes
	$(PYTEST) tests -m pages $(REPORT)

test-slow: $(INSTALLED)  ## What takes more than five seconds each; 2 minutes
	$(PYTEST) tests -m "slow and not (stack or pages)" $(PARALLEL) $(REPORT)

test-typed: $(INSTALLED)  ## The first case of each test of models, with types and shapes checked at every call; 5 minutes
	$(PYTEST) tests/models -p tests.typed -m "not ($(APART))" $(PARALLEL) \
		"--jaxtyping-packages=models,beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"

test-docker: $(INSTALLED)  ## Build and start a stack of its own, train, predict, kill each container: needs Docker; 10 minutes
	$(PYTEST) tests/integration --timeout 1800 -rP

test-gpu: $(INSTALLED)  ## The tests that need a GPU: they compare it with the processor
	$(PYTEST) tests/models -m gpu

test-all:  ## All of these, the simulations and the benchmarks' ratios: for before a release; some hours
	$(MAKE) test test-stack test-pages test-slow test-typed test-docker test-gpu test-engines
	$(MAKE) docs-test verify-statistics bench-compare

coverage: $(INSTALLED)  ## The gate, then which lines it ran: the total, and the least covered modules
	$(MAKE) test COVERAGE="--cov --cov-report="
	$(BIN)/coverage report --sort=cover --skip-covered | tail -n +3 | head -n 10
	$(BIN)/coverage report --format=total

docs: $(INSTALLED)  ## The documentation as pages, into build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --builder html docs build/docs
	@echo "open build/docs/index.html"

docs-test: $(INSTALLED)  ## Run every command and snippet of the guides on a real service: 10 minutes
	$(PYTEST) docs

chaos: $(INSTALLED)  ## Kill, pause and mislead real services at random: MINUTES=20, SEED=0; tells what was lost
	CHAOS_STRIDE=1 $(PYTEST) tests/chaos/test_publishing.py
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.chaos --schedules 10000 --minutes $(or $(MINUTES),20) --seed $(or $(SEED),0) \
		$(if $(LANES),--lanes $(LANES))

soak: $(INSTALLED)  ## Mixed work on a real service for HOURS=2: fails if memory, threads, files, disk or latency grow
	$(BIN)/python -m benchmarks.soak --hours $(or $(HOURS),2)

fuzz: $(INSTALLED)  ## Send anything to a real service for MINUTES=20, SEED=0; tells what repeats a fault
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),20) --seed $(or $(SEED),0)

check: $(INSTALLED)  ## Format, lint, types, import contracts; the same of the dashboard's scripts; no case is known as flaky
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/javascript/check.py
	@if [ -s .ci/flaky.txt ]; then echo 'these cases are flaky: fix each, and empty .ci/flaky.txt'; cat .ci/flaky.txt; exit 1; fi

format: $(INSTALLED)  ## Format, and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED)  ## Speed of engine and service in short; with DATA=folder quality too
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.libraries --samples 1 100 --repetitions 5 --budget 2
	$(BIN)/python -m benchmarks.servers --rounds 1 --seconds 2 --rates 100 200 400 800 --idle 3
	$(BIN)/python -m benchmarks.ratios
	$(if $(DATA),$(BIN)/python -m benchmarks.acceptance --data $(DATA),\
		@echo "DATA=folder adds quality on standard data sets: see benchmarks/data.py")

bench-compare: $(INSTALLED)  ## Ratios of speed beside the last release's; fails if one is a third worse: 2 minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.ratios --compare

bench-gpu: $(INSTALLED)  ## Ratios on a GPU: batches, mixed precision, a service; short on a processor
	$(BIN)/python -m benchmarks.gpu

lifecycle: $(INSTALLED)  ## Seconds to start, to stop, and to go on after a kill -9: some minutes
	$(BIN)/python -m benchmarks.lifecycle

overload: $(INSTALLED)  ## Ten times more than the service can: what it answers, refuses, and needs; 2 minutes
	$(BIN)/python -m benchmarks.overload

hostile: $(INSTALLED)  ## 200 hostile clients of unlike kinds beside a polite one: 2 minutes
	$(BIN)/python -m benchmarks.hostile

quality: $(INSTALLED)  ## DATA=folder: the standard tables and MNIST, hours; goes on where it was stopped
	$(BIN)/python -m benchmarks.uci --data $(DATA) --networks published recipe --picture docs/images/uci.png
	$(BIN)/python -m benchmarks.mnist --data $(DATA) --units 400 800 1200

bench-tables: $(INSTALLED)  ## DATA=folder of tables (benchmarks/tables.py) beside other tools; goes on where it was stopped
	$(BIN)/python -m benchmarks.tables $(DATA)

bench-series: $(INSTALLED)  ## DATA=folder of series (benchmarks/series.py), simulated panels and hours, beside classical methods; goes on where it was stopped
	$(BIN)/python -m benchmarks.series $(DATA)
	$(BIN)/python -m benchmarks.simulated_panels
	$(BIN)/python -m benchmarks.seasons

verify-statistics: $(INSTALLED)  ## Simulations with known answers: is what a model states true? An hour; fills docs/verification.md
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.verification --page docs/verification.md

bench-peers: $(INSTALLED)  ## Beside other libraries and servers, at length: installs 7 environments
	$(BIN)/python -m benchmarks.libraries --install --resume --picture docs/images/libraries.png
	$(BIN)/python -m benchmarks.servers --install --resume --picture docs/images/servers.png

stack:  ## The compose stack: API, worker, Redis, PostgreSQL, S3, Prometheus, Grafana
	docker compose up --build --detach --wait
	@echo "API http://127.0.0.1:$${API_PORT:-8000} · Grafana :$${GRAFANA_PORT:-3000} · Prometheus :$${PROMETHEUS_PORT:-9090}"
	@echo "The key: make --silent stack-key"

release:  ## Replace a running stack by this release, replica by replica: no request fails
	deploy/release.sh

stack-key:  ## The stack's first key, for CREDENCE_KEY
	@docker compose exec -T api cat /run/secrets/admin/key; echo

stack-down:  ## Stop the stack; what it keeps stays in its volumes
	docker compose down

# The auditor is not among what it audits: tools of their own, with versions of their own.
TOOLS := .audit/bin

$(TOOLS)/pip-audit: Makefile
	$(PYTHON) -m venv .audit
	$(TOOLS)/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0 uv==0.13.9
	@touch $@

audit: $(INSTALLED) $(TOOLS)/pip-audit  ## Known vulnerabilities and licences; exit code 2 if nobody could be asked
	@$(BIN)/python .ci/supply_chain.py audit $(TOOLS)

licences: $(INSTALLED)  ## Each package that the service needs, with its licence
	@$(BIN)/python .ci/supply_chain.py licences

sbom: $(INSTALLED) $(TOOLS)/pip-audit  ## sbom.json: the runtime's packages, CycloneDX
	@$(BIN)/python .ci/supply_chain.py sbom $(TOOLS) sbom.json

# The engines that score rows elsewhere have an environment of their own, without the service.
ENGINES := .venv-engines/bin

.venv-engines/.installed: requirements.lock tests/engines/requirements.txt credence/pyproject.toml credence/scoring/pyproject.toml
	$(PYTHON) -m venv .venv-engines
	$(PYTHON) -c 'print(*(line.split()[0] for line in open("requirements.lock") if line[0] not in "#- "), sep="\n")' \
		> .venv-engines/pins.txt
	$(ENGINES)/python -m pip install --quiet --disable-pip-version-check --constraint .venv-engines/pins.txt \
		--requirement tests/engines/requirements.txt ./credence ./credence/scoring
	$(ENGINES)/python -m pip uninstall --quiet --yes credence-client credence-models
	rm -rf credence/build credence/scoring/build
	@touch $@

test-engines: .venv-engines/.installed  ## Spark, Ray, Dask, DuckDB and MLflow with loaded models: needs Java 17; 2 GB, minutes
	OMP_NUM_THREADS=1 $(ENGINES)/python -m pytest --quiet tests/engines -rs

lock: $(TOOLS)/pip-audit  ## Write the locks, with sums, from what .venv holds (after changing pyproject.toml)
	$(BIN)/python .ci/lock.py $(TOOLS)/uv
