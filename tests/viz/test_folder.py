"""The static folder: from a disk, from any path of a server, inside another page."""

import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.viz.builder import Toy
from tests.viz.hostile import HOSTILE
from viz.folder import MANIFEST, main, write_folder
from viz.race import joined

RUN = Toy(steps=4, style="chain", key="chain").ndjson()
RACE = joined({"chain": RUN, "tree": Toy(steps=3, key="tree").ndjson()})


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    texts = {"a run.ndjson": RUN, "race.ndjson": RACE, "odd.ndjson": odd()}
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in texts]


def odd() -> str:
    """Return a run in which every word is one that has broken pages before."""
    return Toy(steps=2, words=list(HOSTILE), prompt=" ".join(HOSTILE), key="<b>x</b>").ndjson()


@pytest.fixture(scope="module")
def folder(sources, tmp_path_factory):
    target = tmp_path_factory.mktemp("site") / "replays"
    write_folder(sources, target, "A lecture <1>")
    return target


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


@pytest.fixture(scope="module")
def addresses(folder):
    """Return the folder's addresses: on the disk, and below a path of a server."""
    handler = functools.partial(Quiet, directory=folder.parents[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    below = folder.relative_to(folder.parents[1])
    yield {"disk": folder.as_uri(), "server": f"http://127.0.0.1:{server.server_port}/{below}"}
    server.shutdown()
    server.server_close()


@pytest.fixture
def reader(tabs):
    """A page. Asserts afterwards that no script failed, the policy refused nothing, and no dialog opened."""
    troubles, asked = [], []
    hears = {
        "pageerror": lambda error: troubles.append(str(error)),
        "dialog": lambda dialog: (troubles.append("dialog"), dialog.dismiss()),
        "console": lambda told: troubles.append(told.text) if told.type == "error" else None,
        "request": lambda request: asked.append(request.url),
    }
    page = tabs.open(hears)
    page.asked = asked
    yield page
    tabs.close(page)
    assert [one for one in troubles if "favicon" not in one and "404" not in one] == []


@pytest.mark.parametrize("place", ["disk", "server"])
def test_every_replay_opens_from_the_list(addresses, reader, folder, place):
    listed = json.loads((folder / MANIFEST).read_text("utf-8"))["replays"]
    assert [entry["file"] for entry in listed] == ["a-run.html", "race.html", "odd.html"]
    for entry in listed:
        reader.goto(f"{addresses[place]}/index.html")
        reader.click(f"a[href='{entry['file']}']")
        reader.wait_for_selector("g[data-node]", state="attached")
        assert reader.locator("[data-lane]").count() == (2 if entry["race"] else 0)
    own = [url for url in reader.asked if not url.startswith((addresses[place], "data:"))]
    assert [url for url in own if "favicon" not in url] == [], "nothing else is asked for"


def test_the_snippet_shows_a_replay_in_another_page(addresses, reader, folder):
    reader.goto(f"{addresses['server']}/index.html")
    snippet = reader.locator("textarea").first.input_value()
    assert f'src="{addresses["server"]}/a-run.html#embed"' in snippet, "the whole address"
    (folder.parents[1] / "lecture.html").write_text(f"<p>My lecture</p>{snippet}", "utf-8")
    reader.goto(f"{addresses['server'].rsplit('/', 2)[0]}/lecture.html")
    frame = reader.frame_locator("iframe")
    frame.locator("g[data-node]").first.wait_for(state="attached")
    assert not frame.locator("h1").is_visible()


def test_an_address_opens_a_run_at_a_step(addresses, reader):
    reader.goto(f"{addresses['disk']}/a-run.html#step=2")
    reader.wait_for_selector("g[data-node]", state="attached")
    assert reader.evaluate("view.step") == 2
    reader.goto("about:blank")
    reader.goto(f"{addresses['disk']}/a-run.html#step=x'y&embed")
    reader.wait_for_selector("g[data-node]", state="attached")


def test_one_trace_is_the_folder_s_own_page(sources, tmp_path, capsys):
    assert main([str(sources[1]), "-o", str(tmp_path / "new" / "race")]) == 0
    assert 'src="index.html#embed"' in capsys.readouterr().out
    page = (tmp_path / "new" / "race" / "index.html").read_text("utf-8")
    assert 'data-race="1"' in page
    (kept,) = (tmp_path / "new" / "race" / "traces").iterdir()
    assert kept.read_text("utf-8") == RACE


def test_equal_names_get_pages_of_their_own(sources, tmp_path):
    folder = tmp_path / "f"
    other = tmp_path / "INDEX.ndjson"
    other.write_text(RUN, "utf-8")
    items = write_folder([sources[0], sources[0], other], folder, "T")
    assert [item.name for item in items] == ["a-run", "a-run-2", "INDEX-2"]
    write_folder([sources[0]], folder, "T")
    assert not (folder / "a-run-2.html").exists(), "written anew, with nothing left of before"


def test_refusals_are_one_line_and_leave_nothing_behind(sources, tmp_path, capsys):
    broken = tmp_path / "broken.ndjson"
    broken.write_text(RUN[:-300], "utf-8")
    assert main([str(sources[0]), str(broken), "-o", str(tmp_path / "out")]) == 2
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("x")
    assert main([str(sources[0]), "-o", str(mine)]) == 2
    assert main([str(sources[0]), "-o", str(broken)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.ndjson", "mine"]
    assert [path.name for path in mine.iterdir()] == ["thesis.tex"]


def test_the_list_holds_no_markup_of_a_trace(folder):
    index = (folder / "index.html").read_text("utf-8")
    assert "<b>x</b>" not in index and "A lecture &lt;1&gt;" in index
    assert index.count("<script") == 1 and "unsafe" not in index.split("</head>")[0]
    readme = (folder / "README.md").read_text("utf-8")
    assert readme.startswith("---\n") and "sdk: static" in readme
