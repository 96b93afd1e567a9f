"""Words about a picture on Watch: the finished run with its picture, another scene, a film, and a picture that the visitor brings."""

import io
import json

import pytest
from PIL import Image

from presets import trace_text


def run_line(visitor) -> dict:
    return json.loads(visitor.trace().splitlines()[0])


@pytest.mark.journey
def test_a_picture_is_shown_chosen_and_brought(visit):
    visitor = visit("/?preset=caption", reduced_motion="reduce")
    page = visitor.page
    page.wait_for_function("t => DraftscopePage.trace('watch') === t", arg=trace_text("caption"))
    page.wait_for_selector("#text .ds-seen:not([hidden])")
    assert page.locator("#text .ds-prompt").inner_text().strip() == "describe the picture."
    assert page.locator("#text .ds-seen").evaluate("c => c.width") == 48
    visitor.change()
    page.wait_for_selector("#models-picture img:not([hidden])")
    page.get_by_role("button", name="Another scene").click()
    page.wait_for_function(
        "/!\\[\\]\\(scene:\\d+\\)/.test(document.querySelector('#prompt textarea').value)"
        " && !document.querySelector('#prompt textarea').value.includes('(scene:7)')"
    )
    assert visitor.run() == "done"
    first = run_line(visitor)
    assert (
        first["family"] == "captions"
        and first["sees"] != json.loads(trace_text("caption").splitlines()[0])["sees"]
    )
    page.get_by_role("button", name="Another film").click()
    page.wait_for_function(
        "/^describe the film. !\\[\\]\\(film:\\d+\\)/.test(document.querySelector('#prompt textarea').value)"
    )
    assert visitor.run() == "done"
    assert run_line(visitor)["sees"]["frames"] == 8
    assert page.locator("#text .ds-seen[data-film]").evaluate("c => c.width > 8 * c.height")
    stream = io.BytesIO()
    Image.new("RGB", (300, 300), (200, 30, 30)).save(stream, "JPEG")
    page.set_input_files(
        "#prompt-picture", {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": stream.getvalue()}
    )
    page.wait_for_function(
        "document.querySelector('#prompt textarea').value.includes('data:image/')"
    )
    assert visitor.run() == "done"
    assert run_line(visitor)["sees"] != first["sees"]
    page.set_input_files(
        "#prompt-picture", {"name": "b.png", "mimeType": "image/png", "buffer": b"no picture"}
    )
    page.locator("#models-picture .pg-alarm").get_by_text("no picture that can be read").wait_for()
