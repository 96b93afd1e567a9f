"""docs/notebook.ipynb, executed: its run, its figures, its replays."""

import html
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.engine.family import trace_of

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
PROMPT = "Once upon a time there was a little dog"


@pytest.fixture(scope="module")
def executed():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without outputs"
    place = {"metadata": {"path": str(NOTEBOOK.parent)}}
    return NotebookClient(notebook, timeout=600, resources=place).execute()


def outputs(executed, mime: str) -> list:
    """Return all outputs of this type; "text" means printed text."""
    every = [output for cell in executed.cells for output in cell.get("outputs", [])]
    if mime == "text":
        return [output["text"] for output in every if output.get("name") == "stdout"]
    return [output["data"][mime] for output in every if mime in output.get("data", {})]


@pytest.mark.exhaustive
def test_it_tells_the_engine_s_own_run(executed):
    here = trace_of(PROMPT, drafter="dyspec", options={"budget": 12}, max_new_tokens=48)
    printed = "".join(outputs(executed, "text"))
    assert printed.startswith(PROMPT + here.summary["text"])
    assert printed.count("same text: True") == 3, "exact drafters change nothing"


def test_its_figures_are_there(executed):
    figures = outputs(executed, "application/vnd.plotly.v1+json")
    assert len(figures) >= 3 and all(figure["data"] for figure in figures)


def test_its_replays_play(executed, browser, tmp_path):
    frames = [page for page in outputs(executed, "text/html") if "<iframe" in page]
    assert len(frames) == 2
    for number, frame in enumerate(frames):
        assert 'sandbox="allow-scripts"' in frame
        inside = html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
        file = tmp_path / f"{number}.html"
        file.write_text(inside, "utf-8")
        page = browser.new_page()
        page.goto(file.as_uri())
        page.wait_for_selector("g[data-node]", state="attached")
        assert page.locator("[data-lane]").count() == (3 if number else 0)
        page.close()
