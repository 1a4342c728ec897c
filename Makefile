# `make help` lists what there is. Every target makes what it needs, from a bare clone on.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
# One thread a process: workers do not fight for the cores, and sums come out in one order.
export OMP_NUM_THREADS ?= 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
.DEFAULT_GOAL := help
.PHONY: help book test quick serve lab notebooks steady messages conformance examined coursework questions grade bench offline pdf colab licences lock package clean browser fonts jail

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

# What is installed: .book to build the book, .run to run the chapters, .test for everything.
$(VENV)/.%: requirements.txt requirements-student.txt requirements/*.txt constraints.txt pyproject.toml coursework/grader/pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) here: install Python 3.11 to 3.14, or name one with make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { echo "$(PYTHON) is $$($(PYTHON) --version): this book needs Python 3.11 to 3.14; name one with make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (Debian and Ubuntu: apt-get install python3-venv)"; exit 1; }
	@$(PYTHON) tools/install.py $*

book: $(VENV)/.book  ## build the book into _build/html and say where to open it
	@$(BIN)/python tools/book.py

serve: $(VENV)/.book  ## build the book and serve it on http://localhost:8000 (PORT=…)
	@$(BIN)/python tools/serve.py $(PORT)

lab: $(VENV)/.run  ## open the chapters in JupyterLab, as copies in lab/ (LAB="--ip=… …" for its options)
	@$(BIN)/python tools/lab.py
	@$(BIN)/python -m jupyterlab --notebook-dir=. $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB) lab

notebooks: $(VENV)/.run fonts  ## run every notebook again, in each language, and store its outputs (ONLY=03 for one, TIMINGS=new measures times anew)
	@$(BIN)/python tools/execute.py $(if $(TIMINGS),--timings) notebooks/$(ONLY)*.ipynb

steady: $(VENV)/.run  ## run the notebooks as other processors would, simulated (SEEDS=1,2,… SIZE=8 ONLY=03)
	@SEEDS="$(SEEDS)" SIZE="$(SIZE)" $(BIN)/python tools/steady.py notebooks/$(ONLY)*.ipynb

messages: $(VENV)/.book  ## bring the catalogues of the translations in step with the pages
	@$(BIN)/python tools/translations.py

conformance: $(VENV)/.test  ## write the cases for implementations in any language into conformance/
	@$(BIN)/python tools/conformance.py
	@$(BIN)/python tools/stories_cases.py

examined: $(VENV)/.run  ## examine public implementations of attention, and store what is found for the book
	@$(BIN)/python tools/examined.py

coursework: $(VENV)/.test  ## write the student versions of the assignments (SEED=… for variants of your own)
	@$(BIN)/python -m coursework.build $(if $(SEED),--seed "$(SEED)")

questions: $(VENV)/.test  ## write the question bank and both tests for Moodle and Canvas into _build/questions
	@$(BIN)/python -m coursework.exports

# On a cluster, the jails are on its machines.
grade: $(VENV)/.test $(if $(SCHEDULER),,jail)  ## mark a folder of submissions (ASSIGNMENT=… SUBMISSIONS=…)
	@test -n "$(ASSIGNMENT)" && test -n "$(SUBMISSIONS)" || { echo "Say what to mark: make grade ASSIGNMENT=… SUBMISSIONS=folder"; exit 2; }
	@$(BIN)/python -m walled_grader --course $(firstword $(wildcard coursework/own) coursework) "$(ASSIGNMENT)" "$(SUBMISSIONS)" $(if $(OUT),--out "$(OUT)") $(if $(JOBS),--jobs "$(JOBS)") $(if $(TABLES),--tables "$(TABLES)") $(if $(PREFER),--prefer "$(PREFER)") $(if $(FILE_TIMES),--file-times) $(if $(ONLY),--only "$(ONLY)") $(if $(WHY),--why "$(WHY)") $(if $(FEEDBACK),--language "$(FEEDBACK)") $(if $(SCHEDULER),--scheduler "$(SCHEDULER)")

bench: $(VENV)/.test  ## measure the package against its peers, and store the run for the book
	@$(BIN)/python -m benchmarks

offline: book  ## build the book and pack it into one zip, to read without a network
	@$(BIN)/python tools/offline.py

pdf: browser fonts book  ## build the book and print each edition into one PDF
	@$(BIN)/python tools/pdf.py

colab: $(VENV)/.book  ## write the chapters as Colab opens them (ATTENTION_BOOK_REPOSITORY=https://…)
	@$(BIN)/python tools/colab.py

licences: $(VENV)/.test  ## list what is installed with its licence, and check that it fits together
	@$(BIN)/python tools/licences.py
	@$(BIN)/python -m pip check

lock: $(VENV)/.test  ## write constraints.txt anew from the requirements
	@$(BIN)/python tools/lock.py

package: $(VENV)/.test  ## build the package as it is released, into dist
	@rm -rf dist
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build --outdir dist
	@$(BIN)/python -m twine check --strict dist/*

browser fonts jail:
	@tools/system.sh $@

quick: $(VENV)/.test  ## the checks that take less than a minute: style, types, tests of the package
	@$(BIN)/python tools/check.py quick

test: $(VENV)/.test browser jail  ## run every check: style, types, tests, every notebook, the book in a browser
	@$(BIN)/python tools/check.py

clean:  ## remove the built book and caches (the environment and lab/ stay)
	@rm -rf _build build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
