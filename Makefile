# `make help` lists what there is. Every target makes what it needs, from a bare clone on.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PORT ?= 8000
# One thread a process: workers do not fight for the cores, and sums come out in one order.
export OMP_NUM_THREADS ?= 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
.DEFAULT_GOAL := help
.PHONY: help book test serve lab notebooks coursework grade bench offline pdf colab licences clean browser jail

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

$(READY): requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) here: install Python 3.11 to 3.14, or name one with make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { echo "$(PYTHON) is $$($(PYTHON) --version): this book needs Python 3.11 to 3.14; name one with make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (Debian and Ubuntu: apt-get install python3-venv)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing requirements.txt into $(VENV) (up to 3 GB, some minutes on a slow line) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt 2>$(VENV)/pip.log || { echo "The requirements could not be installed (is the network up?): $$(grep -m 1 '^ERROR' $(VENV)/pip.log) The whole log: $(VENV)/pip.log"; exit 1; }
	@touch $@

book: $(READY)  ## build the book into _build/html and say where to open it
	@$(BIN)/python tools/book.py

serve: book  ## build the book and serve it on http://localhost:8000 (PORT=…)
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

lab: $(READY)  ## open the chapters in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir=. notebooks

notebooks: $(READY)  ## run every notebook again and store its outputs (TIMINGS=new measures times anew)
	@$(BIN)/python tools/execute.py $(if $(TIMINGS),--timings) notebooks/*.ipynb

coursework: $(READY)  ## write the student versions of the assignments
	@$(BIN)/python -m coursework.build

grade: jail  ## mark a folder of submissions (ASSIGNMENT=… SUBMISSIONS=…)
	@test -n "$(ASSIGNMENT)" && test -n "$(SUBMISSIONS)" || { echo "Say what to mark: make grade ASSIGNMENT=… SUBMISSIONS=folder"; exit 2; }
	@$(BIN)/python -m coursework.grade "$(ASSIGNMENT)" "$(SUBMISSIONS)"

bench: $(READY)  ## measure the package against its peers, and store the run for the book
	@$(BIN)/python -m benchmarks

offline: book  ## build the book and pack it into one zip, to read without a network
	@$(BIN)/python tools/offline.py

pdf: browser book  ## build the book and print it into one PDF
	@$(BIN)/python tools/pdf.py

colab: $(READY)  ## write the chapters as Colab opens them (ATTENTION_BOOK_REPOSITORY=https://…)
	@$(BIN)/python tools/colab.py

licences: $(READY)  ## list what is installed with its licence, and check that it fits together
	@$(BIN)/python tools/licences.py
	@$(BIN)/python -m pip check

browser jail: $(READY)
	@tools/system.sh $@

test: browser jail  ## run every check: style, types, tests, every notebook, the book in a browser
	@$(BIN)/python tools/check.py

clean:  ## remove the built book and caches (the environment stays)
	@rm -rf _build .pytest_cache .ruff_cache .mypy_cache .hypothesis
