"""Pictures in prompts: what people bring is decoded within limits, or refused in one sentence."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from app.pictures import prompt_picture
from engine.errors import UserError
from engine.scenes import brought
from engine.scenes import prompt_picture as prompts
from engine.scenes.scene import SIDE, invent_for, is_held_out, numbered
from engine.training.caption_text import PATCHES, Talks, caption_words


def bytes_of(image: Image.Image, form: str = "PNG", **how) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **how)
    return stream.getvalue()


def halves(wide: int = 80, high: int = 40) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (wide, high), (250, 0, 0))
    image.paste((0, 0, 250), (wide // 2, 0, wide, high))
    return image


def main_colours(pixels: np.ndarray) -> list[str]:
    """At the middles of the four sides: left, top, right, bottom."""
    middle, near, far = SIDE // 2, SIDE // 5, SIDE - SIDE // 5
    places = ((middle, near), (near, middle), (middle, far), (far, middle))
    return ["rgb"[int(pixels[place].argmax())] for place in places]


def test_a_picture_is_made_small_and_stays_upright():
    assert main_colours(brought.seen(bytes_of(halves(60, 60)), SIDE))[::2] == ["r", "b"]
    turned = halves(60, 60)
    exif = Image.Exif()
    exif[0x0112] = 6  # shown a quarter turn clockwise: the left side comes to the top
    data = bytes_of(turned, "JPEG", exif=exif, quality=95)
    assert main_colours(brought.seen(data, SIDE))[1::2] == ["r", "b"]


def test_of_an_animation_the_first_picture_is_seen():
    frames = [Image.new("RGB", (40, 40), colour) for colour in ((250, 0, 0), (0, 0, 250))]
    data = bytes_of(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert set(main_colours(brought.seen(data, SIDE))) == {"r"}


def test_one_pixel_is_a_picture():
    pixels = brought.seen(bytes_of(Image.new("RGB", (1, 1), (0, 250, 0))), SIDE)
    assert pixels.shape == (SIDE, SIDE, 3) and (pixels == (0, 250, 0)).all()


def test_what_is_transparent_is_paper():
    pixels = brought.seen(bytes_of(Image.new("RGBA", (9, 9), (0, 0, 0, 0))), SIDE)
    assert (pixels == brought.PAPER).all()


def bomb(side: int) -> bytes:
    """A few kilobytes that unpack to many megabytes."""
    return bytes_of(Image.new("1", (side, side)))


WRONG = {
    "a text": (lambda: b"no picture", "no picture that can be read"),
    "nothing": (lambda: b"", "no picture that can be read"),
    "cut off": (lambda: bytes_of(halves(400, 400))[:90], "no picture that can be read"),
    "another format": (lambda: bytes_of(halves(), "TIFF"), "no picture that can be read"),
    "a bomb": (lambda: bomb(30_000), "at most 16 million"),
    "a smaller bomb": (lambda: bomb(6_000), "6,000 × 6,000 pixels; at most 16 million"),
    "narrow": (lambda: bytes_of(Image.new("RGB", (400, 4))), "too narrow: 400 × 4"),
    "large": (lambda: b"\x89PNG" + bytes(brought.MOST_BYTES), "larger than 6 MB"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_pictures_are_one_sentence(name):
    make, words = WRONG[name]
    with pytest.raises(UserError, match=words) as told:
        brought.seen(make(), SIDE)
    assert str(told.value).count(".") == 1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("scene:", "A scene is a number"),
        ("scene:-1", "A scene is a number"),
        ("scene:99999999999", "A scene is a number"),
        ("scene:7x", "A scene is a number"),
        ("/etc/passwd", "holds no picture"),
        ("https://example.org/a.png", "holds no picture"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "holds no picture"),
        ("data:image/png;base64,a", "holds no picture"),
    ],
)
def test_nothing_else_is_opened(address, words):
    with pytest.raises(UserError, match=words):
        prompts.pixels(address)


def test_a_prompt_names_one_picture():
    assert prompts.split("what is in the middle?") == ("what is in the middle?", None)
    words = "how many rings are there?"
    assert prompts.split(prompts.joined(words, "scene:7")) == (words, "scene:7")
    assert prompts.split("![a scene](scene:7)  how many?\n") == ("how many?", "scene:7")
    with pytest.raises(UserError, match="2 pictures"):
        prompts.split("![](scene:7) ![](scene:8)")


def test_what_a_visitor_brings_is_short_and_shown():
    data = base64.b64encode(bytes_of(halves(900, 900), "JPEG")).decode()
    told = prompt_picture(f"data:image/jpeg;base64,{data}")
    assert len(told["address"]) < 3000 and told["image"].startswith("data:image/png;base64,")
    assert main_colours(prompts.pixels(told["address"]))[::2] == ["r", "b"]
    assert prompt_picture("scene:7")["address"] == "scene:7"
    for wrong in (None, 7, "scene:x", "data:image/png;base64,AAAA"):
        assert set(prompt_picture(wrong)) == {"error"}


def test_a_numbered_scene_is_always_the_same_and_never_learned_from():
    scenes = [numbered(number) for number in range(30)]
    assert all(is_held_out(scene) for scene, _ in scenes)
    assert (numbered(7)[1] == scenes[7][1]).all()
    generator = np.random.default_rng(0)
    assert not any(is_held_out(invent_for(generator, False)) for _ in range(200))


def test_what_is_learned_depends_on_the_index_and_counts_answers_alone():
    words = caption_words()
    talks = Talks(words)
    one, again, other = (talks.batch(index, 3) for index in (5, 5, 6))
    assert (one.tokens == again.tokens).all() and (one.tokens != other.tokens).any()
    texts = [words.decode(row[PATCHES:]) for row in one.tokens]
    assert all(text.count("<|endoftext|>") >= 2 for text in texts)
    assert words.unk_token_id not in one.tokens
    for row in range(3):
        counted = one.labels[row] >= 0
        assert (one.labels[row][:-1][counted[:-1]] == one.tokens[row][1:][counted[:-1]]).all()
    seen = one.mask[0, 0]
    last = int((one.texts[0] == 1).nonzero()[-1])
    assert seen[last, :PATCHES].all() and not seen[last + 1, PATCHES : last + 1].any()
