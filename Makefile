# `make run` and `make test` set up all they need from a clean clone: Python 3.13 and make are enough.
SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PIP := -m pip --quiet --disable-pip-version-check
COMPILE := .venv-lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

.PHONY: help
help:
	@echo 'make run    the whole system on this machine, with a demo tenant and a live table; Ctrl-C ends it'
	@echo 'make test   everything, the deployed end-to-end test included'
	@echo 'make smoke  the deployed system, unattended, in a temporary folder: one line of figures at the end'
	@echo 'make fuzz   the deployed API against its own contract, by made-up requests: five minutes'
	@echo 'make lint   ruff, mypy, cfn-lint, sam validate, checkov'
	@echo 'make bench  the planner against a bare INSERT … SELECT, the calendar against croniter, the delivery against requests,'
	@echo '            dispatch beside a long backlog against one beside a short,'
	@echo '            imports and requests of the API against what they stand on'
	@echo 'make lock   pins what the requirements/*.in and their like name'
	@echo 'make rds-roots  brings the authorities of RDS in the layer up to date, for regions newer than they are'
	@echo 'make clean  removes what these made: environments, builds and the data under .local'

.PHONY: run smoke fuzz test lint bench lock rds-roots clean
run: .venv/.ready .venv-sam/.ready .venv-ministack/.ready
	@exec .venv/bin/python -m local.run

smoke: .venv/.ready .venv-sam/.ready .venv-ministack/.ready
	@exec .venv/bin/python -m local.smoke

fuzz: .venv/.ready .venv-sam/.ready .venv-ministack/.ready
	@exec .venv/bin/python -m local.fuzz

test: .venv/.ready .venv-sam/.ready .venv-ministack/.ready
	@exec .venv/bin/python -m pytest

lint: .venv/.ready .venv-sam/.ready .venv-checkov/.ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv-sam/bin/cfn-lint template.yaml
	PATH="$(CURDIR)/.venv/bin:$$PATH" SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=eu-west-1 .venv-sam/bin/sam validate --lint
	.venv-checkov/bin/checkov --config-file .checkov.yaml

bench: .venv/.ready
	.venv/bin/python -m benchmarks.next_occurrence
	.venv/bin/python -m benchmarks.delivery
	.venv/bin/python -m benchmarks.dispatch
	.venv/bin/python -m pytest -q -s -m bench
	@exec .venv/bin/python -m benchmarks

lock: .venv-lock/.ready
	set -e; for pins in layers/dependencies/requirements functions/migrate/requirements \
	  requirements/dev requirements/sam requirements/ministack requirements/checkov requirements/lock; \
	do $(COMPILE) --output-file $$pins.txt $$pins.in; done

rds-roots: .venv/.ready
	@exec .venv/bin/python -m local.rds_roots

clean:
	rm -rf .venv .venv-* .aws-sam .local .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/.ready: requirements/dev.txt
.venv-sam/.ready: requirements/sam.txt
.venv-ministack/.ready: requirements/ministack.txt
.venv-checkov/.ready: requirements/checkov.txt
.venv-lock/.ready: requirements/lock.txt

# A failed installation leaves no .ready, so the next make tries again.
.venv%/.ready:
	@python=$$(.ci/find-python) && echo "environment: .venv$* from $<" && "$$python" -m venv .venv$*
	@.venv$*/bin/python $(PIP) install --require-hashes -r $<
	@touch $@

.venv/.ready:
	@python=$$(.ci/find-python) && echo "environment: .venv from $<" && "$$python" -m venv .venv
	@.venv/bin/python $(PIP) install --require-hashes -r $<
	@.venv/bin/python -c 'import site, pathlib; pathlib.Path(site.getsitepackages()[0], "scheduler.pth").write_text("$(CURDIR)/shared\n")'
	@touch $@
