"""The site's own search, asked real questions: questions.json holds for each its words, its error text, and where the answer stands."""

import json
from pathlib import Path

import pytest

QUESTIONS = json.loads(Path(__file__).with_name("questions.json").read_text(encoding="utf-8"))
ENGLISH = [question for question in QUESTIONS if question["language"] == "en"]


def test_every_answer_stands_where_the_table_says(site):
    missing = []
    for question in QUESTIONS:
        page = site / question["page"] / "index.html"
        if not page.is_file() or f'id="{question["heading"]}"' not in page.read_text(encoding="utf-8"):
            missing.append(f"{question['id']}: {question['page']}#{question['heading']}")
    assert not missing


@pytest.fixture(scope="session")
def search(home, browser):
    """A function that asks the page's own search worker and returns the pages it finds, best first."""
    page = browser.new_page()
    page.goto(home, wait_until="networkidle")
    page.evaluate("""async () => {
        const config = JSON.parse(document.getElementById("__config").textContent)
        const worker = new Worker(config.search)
        const answer = () => new Promise(done => worker.addEventListener("message", event => done(event.data), { once: true }))
        window.ask = async message => { const reply = answer(); worker.postMessage(message); return (await reply).data }
        await window.ask({ type: 0, data: { ...await (await fetch("search/search_index.json")).json(), options: { suggest: false } } })
    }""")

    def ask(query):
        items = page.evaluate("query => window.ask({ type: 2, data: query })", query)["items"]
        return [group[0]["location"].partition("#")[0].strip("/") for group in items]

    yield ask
    page.close()


def ranks(search, field):
    """{id: rank of the right page from 1, or None} for the English questions that have a text in `field`."""
    found = {}
    for question in ENGLISH:
        if question[field]:
            pages = search(question[field])
            right = [question["page"], *question.get("also", [])]
            found[question["id"]] = next((rank for rank, page in enumerate(pages, 1) if page in right), None)
    return found


def told(name, found):
    first, third = sum(rank == 1 for rank in found.values()), sum(rank is not None and rank <= 3 for rank in found.values())
    misses = ", ".join(f"{each} at {rank or 'nowhere'}" for each, rank in found.items() if not rank or rank > 3)
    return third, f"{name}: hit@1 {first}, hit@3 {third} of {len(found)}; misses: {misses or 'none'}"


def test_questions_find_their_page_in_the_first_three(search, capsys):
    found = ranks(search, "query")
    third, line = told("the questions' words", found)
    with capsys.disabled():
        print("\n" + line)
    assert third >= 0.85 * len(found)


def test_pasted_error_messages_find_their_page_in_the_first_three(search, capsys):
    found = ranks(search, "error")
    third, line = told("pasted messages", found)
    with capsys.disabled():
        print("\n" + line)
    assert third >= 0.8 * len(found)


@pytest.mark.parametrize("query", ["SymbolicTensor", "KerasTensor", "AttributeError: 'SymbolicTensor' object has no attribute 'numpy'", "tf.function", "trainable: (a-b/c) [d] ^2 ~1 * +x"])
def test_awkward_queries_find_something(search, query):
    assert search(query)


def test_the_search_box_shows_what_the_worker_finds(home, browser):
    page = browser.new_page()
    page.goto(home, wait_until="networkidle")
    page.keyboard.press("s")  # the theme's key for the box
    page.fill(".md-search__input", "'SymbolicTensor' object has no attribute 'numpy'")
    page.keyboard.press("End")
    first = page.wait_for_selector(".md-search-result__item a", timeout=20_000)
    assert "guide/symbolic-tensors/" in first.get_attribute("href")
    page.close()
