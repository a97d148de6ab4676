# make demo    try opsctl on a database of its own     (DEMO_DB=mysql: on MySQL)
# make test    every test on every server, then the lean ones again with the oldest supported libraries
#              (TEST_DB=mysql,postgresql: on these only; TEST_DB=none: what needs no server; ARGS="-x -k name": for pytest)
# make lint    ruff, mypy, import-linter
# make setup   the virtual environments for all of these
# make clean   remove what these have made here; the servers unpacked for tests stay (tests/servers/cache.sh says where)
# PYTHON=/path/to/python names the interpreter to make the environments with.

TEST_DB ?= mysql,mariadb,postgresql,redis
BIN := .venv/bin

.PHONY: demo test test-queries test-faults test-all-else test-oldest lint setup clean

demo:
	@.ci/bootstrap demo
	@$(BIN)/python -m opsctl.demo $(if $(DEMO_DB),--db $(DEMO_DB))

# Four runs, two at a time, each with servers of its own; a run's output comes whole, when it ends.
test:
	@.ci/bootstrap test oldest
	@echo "four test runs, two at a time (some twelve minutes in all); each is shown when it ends"
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-queries test-faults test-all-else test-oldest

# pytest's 5, no test was selected, is right for a run that ARGS leaves empty.
PYTEST = $(1)/bin/pytest --db $(TEST_DB) $(2) $(ARGS) || test $$? = 5 -a -n "$(ARGS)$(filter none,$(TEST_DB))"
test-faults:
	$(call PYTEST,.venv,tests/faults tests/demo)
QUERIES = $(wildcard tests/conformance/test_quer*.py $(addprefix tests/conformance/test_,grants.py logins.py secrets.py))
test-queries:
	$(call PYTEST,.venv,$(QUERIES))
test-all-else:
	$(call PYTEST,.venv,--ignore tests/faults --ignore tests/demo $(addprefix --ignore ,$(QUERIES)))
test-oldest:
	$(call PYTEST,.venv-oldest,-m "not slow" --ignore tests/conformance/test_corpus.py tests/unit tests/conformance)

lint:
	@.ci/bootstrap test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

setup:
	@.ci/bootstrap test oldest

clean:
	rm -rf .venv .venv-oldest dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
