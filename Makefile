# Two commands are enough: `make report` and `make test`. Both set up .venv first, from requirements.lock.

PROFILE ?= quick
APPENDIX ?= results
PAPER ?= a4
MINUTES ?=
ARGS =
BIN := .venv/bin
PYTHON := $(shell command -v python3.11 || command -v python3)
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help report appendix environments test test-core lab lint lock docs

CORE_TESTS := tests/test_core.py tests/test_worker_floor.py tests/test_answers.py tests/test_condition.py \
	tests/test_equivalence.py tests/test_interrupt.py tests/test_memory.py \
	tests/test_npu_smi.py tests/test_planner.py tests/test_cache.py tests/test_rounds.py \
	tests/test_scratch.py tests/test_sharing.py tests/test_statistics.py \
	tests/test_lab.py::test_a_slower_condition_is_seen_and_the_control_shows_no_winner \
	tests/test_lab.py::test_a_comparison_records_what_it_takes_to_do_it_again \
	tests/test_lab.py::test_training_learns_and_a_run_that_misses_the_threshold_is_censored
PYENV := $${PYENV_ROOT:-$$HOME/.pyenv}/versions
CORE_PYTHON = $(firstword $(shell for minor in 13 12; do \
	for python in python3.$$minor $(PYENV)/3.$$minor.*/bin/python; do \
	"$$python" -c '' 2>/dev/null && command -v "$$python"; done; done) $(PYTHON))

# With these, pip would install elsewhere or nothing.
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_DRY_RUN PIP_NO_DEPS

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

report: $(INSTALLED) ## Measure, write outputs/PROFILE/report.html and .pdf (PROFILE=quick or full; MINUTES=10: ten more)
	$(BIN)/python -m benchlib run --profile $(PROFILE) $(if $(MINUTES),--minutes "$(MINUTES)") $(ARGS)

appendix: $(INSTALLED) ## Bundle report, notebooks and measurements for an archive (APPENDIX=results or code, PAPER=a4 or letter)
	$(BIN)/python -m benchlib appendix --profile $(PROFILE) --appendix $(APPENDIX) --paper $(PAPER)

# Those whose file says how much room and time they took, from a fast index. Others are for accelerators, or bring CUDA.
# Versions between those of the works' time and today's are for the profile years, which names them.
THERE = $(shell grep -l '^. takes:' $$(grep -L 'profile years' environments/*.txt))
environments: $(INSTALLED) ## Make the environments of other frameworks and of earlier versions (ENVIRONMENTS="chainer mxnet-1.6": only these)
	@awk '/^. takes:/ {n++; gb += $$3; s += $$6} END {printf "%d environments: about %.1f GB; %d min from a fast index\n", n, gb, s / 60 + 1}' \
		$(or $(ENVIRONMENTS:%=environments/%.txt),$(THERE))
	@absent=; for name in $(or $(ENVIRONMENTS),$(patsubst environments/%.txt,%,$(THERE))); do \
		$(BIN)/benchlib environment create $$name || absent="$$absent $$name"; done; \
	test -z "$$absent" || { echo "not made:$$absent" >&2; exit 1; }

test: $(INSTALLED) ## Run the fast tests, two files at a time (pytest -m slow and -m release run the others)
	@$(BIN)/python -m pytest -m 'not slow and not release and not alone' -n 2 --dist loadfile; beside=$$?; \
	$(BIN)/python -m pytest -m 'alone and not slow and not release' $$(grep -l 'mark\.alone' tests/*.py) && exit $$beside

test-core: ## Test the core alone, with the newest Python (3.13, 3.12 ...) and packages, no extras, no framework
	rm -rf build # what lies there would be packed, too
	"$(CORE_PYTHON)" -m venv --clear .venv-core
	.venv-core/bin/python -m pip install --quiet . pytest
	.venv-core/bin/pytest $(CORE_TESTS)

lab: $(INSTALLED) ## Open JupyterLab on a page of the notebooks and where each stands (ARGS="--allow-root --port=8889": its options)
	$(BIN)/python -m benchlib lab --profile $(PROFILE) $(if $(ARGS),-- $(ARGS))

lint: $(INSTALLED) ## Check style, format, types, and that each floor of the house imports only floors below
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo

# Where pip finds torch's build with CUDA, the lock takes in CUDA's packages too: lock where it finds the CPU build.
# The suffix of that build (+cpu) is cut off, because no package index has a version of that name.
lock: $(INSTALLED) ## Pin the versions that pyproject.toml asks for; pins that still fit stay
	CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/pip-compile --quiet --all-extras --allow-unsafe --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file requirements.lock pyproject.toml
	sed -i.old -e 's/^\([^ ]*==[^ ]*\)+cpu$$/\1/' requirements.lock
	rm requirements.lock.old
	$(BIN)/uv pip compile --quiet --index-strategy unsafe-best-match --constraint requirements.lock \
		--custom-compile-command 'make lock' --group docs --output-file docs/requirements.lock pyproject.toml

docs: .venv-docs/.installed ## Build the site, docs/_build/index.html; notebooks are those of the gallery, nothing is executed
	.venv-docs/bin/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build

.venv-docs/.installed: docs/requirements.lock
	"$(PYTHON)" -m venv .venv-docs
	.venv-docs/bin/python -m pip install -r docs/requirements.lock
	@touch $@

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "There is no python3.11 and no python3 here: install Python 3.11 and its venv module." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; v[:2] == (3, 11) or sys.exit( \
		f"{sys.executable} is Python {v[0]}.{v[1]}, but benchlib needs 3.11 (MindSpore and torch are pinned for it): " \
		"install python3.11, with its venv module, or use: conda env create -f environment.yml")'
	"$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install -r requirements.lock
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@$(BIN)/python -I -c 'import benchlib, papermill' # whatever pip said
	@touch $@
