# Every target sets up what it needs: python3, git and make are enough.
PYTHON ?= python3
# Tests start many Pythons: each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
# Four for two cores: many tests wait for processes. A table is one long test: idle workers
# take tests from the others.
PYTEST_ARGS ?= -n 4 --dist worksteal

OTHER := .venv-adapters
MUTATION_TESTER := cosmic-ray==8.7.0

.PHONY: demo test quick pins mutants package browser pictures docs docs-serve adapters conformance architecture check format bench soak hosts coverage clean

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m compileall -q src
	touch $(READY)

# The demo needs little: what the other targets need is added when they are run.
$(DEMO): pyproject.toml
	@test $(READY) -nt pyproject.toml || { echo 'installing into .venv ...' && \
		$(PYTHON) -m venv .venv && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,inspect]'; }
	@touch $(DEMO)

demo: $(DEMO)
	@$(BIN)/hookline demo

test: $(READY)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# What a change can break, in less than a minute.
quick: $(READY)
	@$(BIN)/python -m tests.support.durations

# What differs from the recorded tables in tests/pins; UPDATE=1 records it.
pins: $(READY)
	@$(BIN)/python -m tests.support.pins $(if $(UPDATE),--update)
	@test ! -e $(OTHER)/.ready || $(OTHER)/bin/python -m tests.support.pins $(if $(UPDATE),--update) tests/pins/test_adapters.py

# The wheel and the sources, built into dist/ and tried in an empty environment.
package: $(READY)
	$(BIN)/python -m tests.packaging

# The tests under other Pythons, each in an environment of its own:
# make pythons PYTHONS="python3.12 python3.13" TESTS="tests/engine tests/processes"
PYTHONS ?= python3.12 python3.13 python3.14
TESTS ?= tests
.PHONY: pythons
pythons: $(addprefix pythons-,$(PYTHONS))

pythons-%: pyproject.toml
	@if ! $* --version 2>/dev/null; then echo "$* is not installed: skipped"; exit 0; fi; \
	set -e; other=.venv-$$($* -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	if [ ! $$other/.ready -nt pyproject.toml ]; then \
		$* -m venv $$other; \
		$$other/bin/python -m pip install --quiet --upgrade pip; \
		$$other/bin/python -m pip install --quiet --editable '.[dev]'; \
		touch $$other/.ready; \
	fi; \
	$$other/bin/python -m pytest $(PYTEST_ARGS) $(TESTS)

# Programs whose tests skip without them (Debian, Ubuntu): the browser that shows the
# inspector, and the shells that complete commands.
PROGRAMS := chromium zsh fish
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -n)
browser:
	which $(PROGRAMS) || { $(SUDO) apt-get -qq update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $(PROGRAMS); }

# The pictures of the inspector in the documentation (needs Chromium).
pictures: $(READY)
	$(BIN)/python -m tests.inspector.pictures

# The documentation as a site, in `site/`: warnings are errors, links are checked.
docs: $(READY)
	$(BIN)/python -m tests.docs.site
	$(BIN)/zensical build --clean --strict
	$(BIN)/python -m tests.docs.built_site

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site 8000

# Adapters whose frameworks cannot be installed beside the others.
adapters: $(OTHER)/.ready
	$(OTHER)/bin/python -m pytest $(PYTEST_ARGS) tests/adapters/test_google_adk.py tests/adapters/test_strands.py tests/adapters/test_common.py tests/pins/test_adapters.py

$(OTHER)/.ready: pyproject.toml
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/python -m pip install --quiet --upgrade pip
	$(OTHER)/bin/python -m pip install --quiet --editable '.[adapters]'
	$(OTHER)/bin/python -c 'import google.adk, strands'
	touch $@

# Run the cases of other folders: make conformance DIR="one another"
conformance: $(READY)
	CONFORMANCE="$(DIR)" $(BIN)/python -m pytest $(PYTEST_ARGS) tests/conformance -k hold

architecture: $(READY)
	$(BIN)/python -m tests.support.architecture

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(MAKE) --no-print-directory -j 2 --output-sync=target types-linux types-darwin

.PHONY: types-linux types-darwin
types-linux: $(READY)
	$(BIN)/mypy

# What depends on the system is ours or in the standard library: packages are not followed.
NO_PACKAGES := --follow-imports=skip --ignore-missing-imports --allow-subclassing-any \
	--allow-untyped-decorators --no-warn-return-any --no-warn-unused-ignores
types-darwin: $(READY)
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin $(NO_PACKAGES) src

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) $(OTHER)/.ready
	$(BIN)/python -m benches
	$(OTHER)/bin/python -m benches --only adapters

soak: $(READY)
	$(BIN)/python -m soak --report soak-report.json

# The real coding agents, offline (needs npm): make hosts HOSTS="claude codex"
hosts: $(READY)
	$(BIN)/python -m tests.hosts.real $(HOSTS)

# Faults put into the code, and which of them no test notices: up to an hour, resumable.
# Remove .mutants to start again after a change of code or tests.
mutants: $(READY) .venv-mutants/.ready
	.venv-mutants/bin/python -m tests.support.mutants $(TESTS)

.venv-mutants/.ready:
	$(PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet --disable-pip-version-check $(MUTATION_TESTER)
	touch $@

coverage: $(READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -p no:xdist
	$(BIN)/coverage combine
	$(BIN)/coverage report

clean:
	rm -rf .venv .venv-* dist build site .cache .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
