# `make demo` and `make test` are all the set-up there is. Needs Python 3.11 to 3.13: `make PYTHON=python3.12 test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
export TF_CPP_MIN_LOG_LEVEL ?= 3
export NO_MKDOCS_2_WARNING ?= 1

.PHONY: demo test check docs bench peers check-serving-version clean

demo: .venv/demo.stamp  ## Trains a model on the embedded phrasebook and translates what it never saw.
	$(BIN)/python training/demo.py

test: check  ## Runs ruff, mypy and the tests.
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mkdocs build --strict --quiet --site-dir build/site

docs: .venv/dev.stamp  ## Builds the guide: open build/site/index.html.
	$(BIN)/mkdocs build --strict --quiet --site-dir build/site

peers: .venv/peers.stamp  ## Adds PyTorch, JAX and other engines, which some tests compare with.

# A trained model and text to translate: make bench RUN=runs/multi30k-en-de SOURCE=test_2016_flickr.en.gz
RUN ?= runs/multi30k-en-de
SOURCE ?= test.en
bench: .venv/peers.stamp  ## Runs the benchmarks against other engines, and writes their figures into the guide.
	@test -d "$(RUN)" && test -f "$(SOURCE)" || { echo "make bench needs a trained RUN and a SOURCE to translate. Received: RUN=$(RUN) SOURCE=$(SOURCE)" >&2; exit 2; }
	$(BIN)/python training/benchmarks/training.py --size tiny --to build/benchmarks
	$(BIN)/python training/benchmarks/training.py --size tiny --precision mixed_bfloat16 --to build/benchmarks
	$(BIN)/python training/benchmarks/training.py --size base --rows 32 --rounds 3 --steps 2 --to build/benchmarks
	$(BIN)/python training/benchmarks/decoding.py $(RUN) --source $(SOURCE) --to build/benchmarks
	$(BIN)/python training/benchmarks/growth.py --to build/benchmarks
	$(BIN)/python training/benchmarks/report.py build/benchmarks --page docs/performance.md

check-serving-version: .venv/dev.stamp .venv-serving/made.stamp  ## Runs an export under TensorFlow Serving's TensorFlow.
	$(BIN)/python training/check_serving_version.py

# A stamp is as old as the last install from its files: make installs again only when one of them has changed.
.venv/demo.stamp: requirements.txt pyproject.toml | .venv/made.stamp
	$(BIN)/python -m pip install --quiet --requirement requirements.txt --editable '.[train,visualize]'
	touch $@

.venv/dev.stamp: requirements-dev.txt requirements.txt pyproject.toml | .venv/made.stamp
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.txt --editable '.[train,visualize,demo]'
	touch $@

.venv/peers.stamp: requirements-peers.txt .venv/dev.stamp
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.txt --requirement requirements-peers.txt
	touch $@

.venv-serving/made.stamp: requirements-serving.txt
	$(PYTHON) -m venv .venv-serving
	.venv-serving/bin/python -m pip install --quiet --requirement requirements-serving.txt
	touch $@

.venv/made.stamp:
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11 to 3.13 is needed. Received: " + sys.version)'
	$(PYTHON) -m venv .venv
	touch $@

clean:
	rm -rf .venv .venv-serving build dist *.egg-info
