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
	$(BIN)/python -m tests.e2e.browser
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
	$(BIN)/python -m tests.e2e.pictures

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

chaos: $(INSTALLED)
	SEQCLS_CHAOS=long $(BIN)/pytest tests/chaos tests/integration/test_counts_interpretability.py \
		tests/integration/test_matrix.py tests/integration/test_report.py tests/integration/test_trial_states.py \
		tests/unit/test_any_network.py tests/unit/test_lanes.py tests/unit/test_multiset.py -s
	$(BIN)/python -m tests.chaos.planted

clean:
	rm -rf $(VENV) site

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
