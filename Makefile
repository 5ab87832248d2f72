# Each target makes .venv first if it is missing or older than the locked requirements. PYTHON chooses the Python, LOCK=requirements-gpu.txt the GPU libraries.
PYTHON ?= python3
LOCK ?= requirements.txt
RUN = .venv/bin/python
TOOL = PYTHONPATH=docs/hooks:snippets $(RUN) -m fieldguide

export NO_MKDOCS_2_WARNING = 1

.PHONY: serve test site verify records measure stage lock

serve: .venv/ready ## verify and measure what has no record yet, then serve the site
	@$(RUN) -m pytest docs -q ; $(RUN) -m mkdocs serve

test: .venv/ready ## run the code on the pages, then the tests of the machinery and the snippets
	@$(RUN) -m pytest

site: .venv/ready ## the publishable site, in site/: verified, measured, strict
	@$(RUN) -m pytest docs -q && $(RUN) -m mkdocs build --strict

verify: .venv/ready ## run every program anew and write the record; E=tf2.15 under that environment of pyproject.toml
	@$(RUN) -m pytest docs -q --fresh $(if $(E),--environment $(E) --record $(E),--record main)

records: .venv/ready ## run what has changed in each environment of pyproject.toml, and write the records
	@names=$$($(TOOL) environments) && for name in $$names; do $(RUN) -m pytest docs -q --environment $$name --record $$name || exit; done

measure: .venv/ready ## run the benchmarks that have no valid record; E=tf2.15 as above
	@$(TOOL) measure $(E)

stage: .venv/ready ## the pages as published, as plain Markdown, in TO=folder
	@$(TOOL) stage $(TO)

lock: .venv/ready ## write requirements*.txt from pyproject.toml
	@$(RUN) -m pip install -q uv && for extra in "" gpu; do $(RUN) -m uv pip compile -q --universal --generate-hashes --no-emit-index-url --python-version 3.11 $${extra:+--extra $$extra} pyproject.toml -o requirements$${extra:+-$$extra}.txt; done

.venv/ready: $(LOCK)
	@$(PYTHON) -c 'import sys; sys.version_info[:2] in [(3, 11), (3, 12), (3, 13)] or sys.exit("Python %d.%d cannot be used: the site needs Python 3.11, 3.12 or 3.13 (make PYTHON=python3.12)" % sys.version_info[:2])'
	@echo "making .venv: downloads and unpacks TensorFlow and MkDocs, about 2.5 GB, a minute or more"
	@$(PYTHON) -m venv --clear .venv && $(RUN) -m pip install -q --require-hashes -r $(LOCK) && touch $@
