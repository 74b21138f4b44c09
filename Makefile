# Each target sets up what it needs; the second time that takes no time.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Pytest rewrites each file of tests, and keeps what it wrote where Python may write bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder
OF ?=

.PHONY: run dev test tests test-fast machine-code lint format docs pictures bench chaos clean

run: $(INSTALLED)
	$(BIN)/seqcls sweep report
	$(BIN)/seqcls dashboard --port 8501

dev: $(INSTALLED)
	$(BIN)/pre-commit install

test: $(INSTALLED)
	$(MAKE) --jobs 2 lint tests

tests: machine-code
	$(BIN)/python -m tests.browser.browser
	$(PYTEST) $(OF)

# Those of the files whose tests are quick, by the seconds that were last recorded.
test-fast: machine-code
	$(PYTEST) --fast

# Tests would compile it too, each process of them for itself.
# Likewise bytecode, where Python is told to write none: each process would read all source anew.
machine-code: $(INSTALLED)
	$(BIN)/python -m compileall -q seqcls sweeps dashboard tests
	$(BIN)/python -m tests.machine_code

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict

pictures: $(INSTALLED)
	$(BIN)/python -m tests.browser.pictures

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

# `make chaos MINUTES=600 PART="kills server" SEED=1`: for so long, of these parts, with other cases.
MINUTES ?= 30
SEED ?= $(shell date +%j)

chaos: $(INSTALLED)
	$(BIN)/python -m tests.chaos $(PART) --minutes $(MINUTES) --seed $(SEED)

clean:
	rm -rf $(VENV) site

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
