# What one does in this repository; `make help` lists it. Every target is one uv command, shown
# before it runs, so that one can as well type it. The first one that runs sets everything up.

# uv as found on the PATH, else one of the project's own.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
ifeq ($(UV),)
UV := .tools/uv/bin/uv
OWN_UV := $(UV)
endif

RUN := $(UV) run

# Byte code is written, also where the environment says otherwise: without it each process compiles
# the grader anew, and each worker of the tests all test files.
export PYTHONDONTWRITEBYTECODE :=

# What to add to a command: make check ARGS=03
ARGS ?=

.PHONY: help
help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='	' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

.PHONY: grade
grade: $(OWN_UV) ## grade the sample class in examples/ and print its table
	$(RUN) grader grade examples/class --out reports $(ARGS)

# Plugins that these tests do not need: those for the tests of problems load torch in the process that
# distributes tests; logging looks at all loggers of torch six times a test.
PYTEST := pytest tests -p no:grader -p no:grader_terminal -p no:logging -p no:timeout --random-order \
	--numprocesses auto --dist loadfile --max-worker-restart 0 \
	-o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# If a test hangs, the run shows its place and ends. The order is random; the last line shows how to
# repeat it: make test ARGS=--random-order-seed=1
.PHONY: test
test: $(OWN_UV) ## test the grader and the course, without slow tests
	$(RUN) $(PYTEST) -m "not slow" $(ARGS)

.PHONY: test-slow
test-slow: $(OWN_UV) ## test what takes long
	$(RUN) $(PYTEST) -m slow $(ARGS)

.PHONY: test-all
test-all: $(OWN_UV) ## test everything
	$(RUN) $(PYTEST) $(ARGS)

# It returns 1 while something is still to do; that is no fault of make's.
.PHONY: check
check: $(OWN_UV) ## score the problems as they stand, with the tests that students have
	$(RUN) grader check $(ARGS) || [ $$? -eq 1 ]

.PHONY: watch
watch: $(OWN_UV) ## test a problem again each time it is saved
	$(RUN) grader watch $(ARGS)

# Where the students' copy goes: make release DIR=../for-students
DIR ?= ../attention-students
.PHONY: release
release: $(OWN_UV) ## write the students' copy, or bring it up to date
	$(RUN) grader author release $(DIR) $(ARGS)

.PHONY: audit
audit: $(OWN_UV) ## prove the course: stubs score 0, solutions all, mistakes lose points
	$(RUN) grader author audit $(ARGS)

.PHONY: figures
figures: $(OWN_UV) ## draw the pictures of the problems anew
	$(RUN) python problems/shared/pictures.py

.PHONY: lint
lint: $(OWN_UV) ## check style, types and spelling
	$(RUN) codespell
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy

.PHONY: clean
clean: ## remove what the other targets made, but for reports, .venv and .tools
	rm -rf dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name .venv -prune -o -name .tools -prune -o -name __pycache__ -prune -exec rm -rf {} +

# pip of the machine's Python installs into the new environment, so that neither uv nor ensurepip,
# which some systems keep in a package of its own, need be there.
.tools/uv/bin/uv:
	@echo "uv is not on the PATH; installing it into .tools/uv"
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "This course needs Python 3.11 or later as python3; found: $$(python3 --version 2>&1)"; exit 1; }
	@python3 -m pip --version >/dev/null 2>&1 \
		|| { echo "python3 has no pip. Install pip, or uv itself, and run make again."; exit 1; }
	@python3 -m venv --without-pip .tools/uv
	@python3 -m pip --python .tools/uv/bin/python install --quiet uv
