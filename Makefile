# The commands of this repository; `make help` lists them. Each target runs uv commands and prints
# them first, so you can also type them. The first target that you run installs everything.

# Use uv from the PATH. If it is missing, install it into .tools.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
ifeq ($(UV),)
UV := .tools/uv/bin/uv
OWN_UV := $(UV)
endif

RUN := $(UV) run

# Write byte code even if the environment forbids it. Without byte code, each process compiles the
# grader again, and each worker of pytest compiles all test files.
export PYTHONDONTWRITEBYTECODE :=

# Arguments that are added to a command: make check ARGS=03
ARGS ?=

.PHONY: help
help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='	' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

.PHONY: grade
grade: $(OWN_UV) ## grade the sample class in examples/ and print its table
	$(RUN) grader grade examples/class --out reports $(ARGS)

# Without plugins that these tests do not need. The grader's plugins load torch in the process that
# distributes the tests. The plugin `logging` visits all loggers of torch six times per test.
PYTEST := pytest tests -p no:grader -p no:grader_terminal -p no:logging -p no:timeout --random-order \
	--numprocesses auto --dist loadfile --max-worker-restart 0 \
	-o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# If a test hangs, the run prints its traceback and ends. The order is random. To repeat it, use the
# seed in the last line of the output: make test ARGS=--random-order-seed=1
.PHONY: test
test: $(OWN_UV) ## test the grader and the course, without slow tests
	$(RUN) $(PYTEST) -m "not slow" $(ARGS)

.PHONY: test-slow
test-slow: $(OWN_UV) ## run the slow tests
	$(RUN) $(PYTEST) -m slow $(ARGS)

.PHONY: test-all
test-all: $(OWN_UV) ## run all tests
	$(RUN) $(PYTEST) $(ARGS)

# The exit status 1 means that a problem is not solved yet, which is not an error.
.PHONY: check
check: $(OWN_UV) ## score the problems with the visible tests
	$(RUN) grader check $(ARGS) || [ $$? -eq 1 ]

.PHONY: watch
watch: $(OWN_UV) ## test a problem again each time it is saved
	$(RUN) grader watch $(ARGS)

# The folder of the students' copy: make release DIR=../for-students
DIR ?= ../attention-students
.PHONY: release
release: $(OWN_UV) ## write or update the students' copy
	$(RUN) grader author release $(DIR) $(ARGS)

.PHONY: audit
audit: $(OWN_UV) ## check that stubs score 0, references get full marks, and mistakes lose points
	$(RUN) grader author audit $(ARGS)

.PHONY: figures
figures: $(OWN_UV) ## draw the pictures of the problems again
	$(RUN) python problems/shared/pictures.py

.PHONY: lint
lint: $(OWN_UV) ## check style, types and spelling
	$(RUN) codespell
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy

.PHONY: clean
clean: ## remove files that other targets wrote, except reports, .venv and .tools
	rm -rf dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name .venv -prune -o -name .tools -prune -o -name __pycache__ -prune -exec rm -rf {} +

# The system's pip installs uv into the new environment, because ensurepip is missing on systems that
# put it into a separate package.
.tools/uv/bin/uv:
	@echo "uv is not on the PATH; installing it into .tools/uv"
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "This course needs Python 3.11 or later as python3; found: $$(python3 --version 2>&1)"; exit 1; }
	@python3 -m pip --version >/dev/null 2>&1 \
		|| { echo "python3 has no pip. Install pip, or uv itself, and run make again."; exit 1; }
	@python3 -m venv --without-pip .tools/uv
	@python3 -m pip --python .tools/uv/bin/python install --quiet uv
