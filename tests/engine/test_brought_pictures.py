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
from engine.scenes.film import (
    ABSENT,
    FRAMES,
    Actor,
    frame_of,
    invent_film_for,
    is_held_out_film,
    numbered_film,
)
from engine.scenes.film_talk import FILM_KINDS, asked_film
from engine.scenes.scene import SIDE, invent_for, is_held_out, numbered
from engine.training.caption_text import PATCHES, Talks, caption_words


def bytes_of(image: Image.Image, form: str = "PNG", **how) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **how)
    return stream.getvalue()


def halves(wide: int = 80, high: int = 40) -> Image.Image:
    """Return a picture that is red on the left, and blue on the right."""
    image = Image.new("RGB", (wide, high), (250, 0, 0))
    image.paste((0, 0, 250), (wide // 2, 0, wide, high))
    return image


def main_colours(pixels: np.ndarray) -> list[str]:
    """Return the colours at the middles of the four sides: left, top, right, bottom."""
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


def animation(count: int, side: int = 40, form: str = "GIF") -> bytes:
    """Return a film with ever less red and more blue."""
    colours = [
        (250 - at * 250 // max(1, count - 1), 0, at * 250 // max(1, count - 1))
        for at in range(count)
    ]
    frames = [Image.new("RGB", (side, side), colour) for colour in colours]
    return bytes_of(frames[0], form, save_all=True, append_images=frames[1:])


def test_of_an_animation_eight_frames_are_seen_from_the_first_to_the_last():
    for count in (2, 8, 29):
        film = brought.seen(animation(count), SIDE, FRAMES).reshape(FRAMES, SIDE, SIDE, 3)
        blue = film[:, SIDE // 2, SIDE // 2, 2].astype(int)
        assert blue[0] < 20 and blue[-1] > 230 and (np.diff(blue) >= 0).all()
        assert count == 2 or max(np.diff(blue)) < 80


def test_of_an_animation_a_model_without_films_sees_the_first_picture():
    assert set(main_colours(brought.seen(animation(2), SIDE))) == {"r"}


def test_an_animation_of_one_frame_is_a_picture():
    pixels = brought.seen(animation(1), SIDE, FRAMES)
    assert pixels.shape == (SIDE, SIDE, 3) and set(main_colours(pixels)) == {"r"}


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("MOST_FRAMES", 8, "has 9 pictures; at most 8 are read"),
        ("MOST_PIXELS", 1700, "too large: 9 pictures of 40 × 40 pixels"),
    ],
)
def test_a_long_animation_is_refused(monkeypatch, limit, most, words):
    monkeypatch.setattr(brought, limit, most)
    with pytest.raises(UserError, match=words):
        brought.seen(animation(9), SIDE, FRAMES)


def test_one_pixel_is_a_picture():
    pixels = brought.seen(bytes_of(Image.new("RGB", (1, 1), (0, 250, 0))), SIDE)
    assert pixels.shape == (SIDE, SIDE, 3) and (pixels == (0, 250, 0)).all()


def test_what_is_transparent_is_paper():
    pixels = brought.seen(bytes_of(Image.new("RGBA", (9, 9), (0, 0, 0, 0))), SIDE)
    assert (pixels == brought.PAPER).all()


def bomb(side: int) -> bytes:
    """Return a file of a few kilobytes that unpacks to many megabytes."""
    return bytes_of(Image.new("1", (side, side)))


WRONG = {
    "a text": (lambda: b"no picture", "no picture that can be read"),
    "nothing": (lambda: b"", "no picture that can be read"),
    "cut off": (lambda: bytes_of(halves(400, 400))[:90], "no picture that can be read"),
    "another format": (lambda: bytes_of(halves(), "TIFF"), "no picture that can be read"),
    "a bomb": (lambda: bomb(14_000), "at most 16 million"),  # Pillow itself refuses it
    "a smaller bomb": (lambda: bomb(6_000), "6,000 × 6,000 pixels; at most 16 million"),
    "narrow": (lambda: bytes_of(Image.new("RGB", (400, 4))), "too narrow: 400 × 4"),
    "large": (lambda: b"\x89PNG" + bytes(brought.MOST_BYTES), "larger than 6 MB"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_pictures_are_one_sentence(name):
    make, words = WRONG[name]
    with pytest.raises(UserError, match=words) as told:
        brought.seen(make(), SIDE, FRAMES)
    assert str(told.value).count(".") == 1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("scene:", "A scene is a number"),
        ("scene:-1", "A scene is a number"),
        ("scene:99999999999", "A scene is a number"),
        ("scene:7x", "A scene is a number"),
        ("film:", "A film is a number"),
        ("film:seven", "A film is a number"),
        ("film:99999999999", "A film is a number"),
        ("/etc/passwd", "holds no picture"),
        ("https://example.org/a.png", "holds no picture"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "holds no picture"),
        ("data:image/png;base64,a", "holds no picture"),
    ],
)
def test_nothing_else_is_opened(address, words):
    with pytest.raises(UserError, match=words):
        prompts.pixels(address)


def test_a_film_is_asked_of_a_model_that_sees_films():
    assert prompts.pixels("film:7").shape == (FRAMES * SIDE, SIDE, 3)
    assert prompts.pixels("film:7", 2 * SIDE, FRAMES).shape == (2 * FRAMES * SIDE, 2 * SIDE, 3)
    with pytest.raises(UserError, match="sees one picture and no films"):
        prompts.pixels("film:7", frames=1)


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
    assert len(told["address"]) < 3000 and not told["film"]
    assert told["image"].startswith("data:image/png;base64,")
    assert main_colours(prompts.pixels(told["address"]))[::2] == ["r", "b"]
    assert prompt_picture("scene:7")["address"] == "scene:7"
    data = base64.b64encode(animation(9, 300)).decode()
    told = prompt_picture(f"data:image/gif;base64,{data}")
    assert told["film"] and len(told["address"]) < brought.SMALL
    assert len(prompts.pixels(told["address"])) == FRAMES * SIDE
    shown = prompt_picture("film:7")
    assert shown["film"] and (prompts.pixels(shown["image"]) == numbered_film(7)[1]).all()
    for wrong in (None, 7, "scene:x", "film:x", "data:image/png;base64,AAAA"):
        assert set(prompt_picture(wrong)) == {"error"}


def test_a_numbered_scene_is_always_the_same_and_never_learned_from():
    scenes = [numbered(number) for number in range(30)]
    assert all(is_held_out(scene) for scene, _ in scenes)
    assert (numbered(7)[1] == scenes[7][1]).all()
    generator = np.random.default_rng(0)
    assert not any(is_held_out(invent_for(generator, False)) for _ in range(200))


def test_so_is_a_numbered_film_and_its_frames_are_scenes():
    films = [numbered_film(number) for number in range(30)]
    assert all(is_held_out_film(film) for film, _ in films)
    assert (numbered_film(7)[1] == films[7][1]).all()
    generator = np.random.default_rng(0)
    every = [invent_film_for(generator, False) for _ in range(200)]
    assert not any(map(is_held_out_film, every))
    for film in every:
        for frame in range(FRAMES):
            cells = [thing.cell for thing in frame_of(film, frame)]
            assert cells == sorted(set(cells)) and set(cells) <= set(range(9))


def test_what_is_said_of_a_film_is_what_happens_in_it():
    goes = Actor("red", "ring", (0, 0, 0, 4, 4, 5, 5, 5))
    stays = Actor("blue", "cross", (7,) * FRAMES)
    comes = Actor("green", "two", (ABSENT,) * 3 + (8,) * 5)
    film, generator = (goes, stays, comes), np.random.default_rng(0)
    said = {asked_film(kind, film, generator).answer for kind in FILM_KINDS for _ in range(40)}
    assert said == {
        "a red ring goes from the top left to the right, a blue cross stays at the bottom and a green two comes at the bottom right.",
        "the red ring goes from the top left to the right.",
        "the blue cross stays at the bottom.",
        "the green two comes at the bottom right.",
        "a red ring moves.",
        "first the red ring is at the top left.",
        "last the red ring is at the right.",
        "first the blue cross is at the bottom.",
        "last the blue cross is at the bottom.",
        "first the green two is not there.",
        "last the green two is at the bottom right.",
    }


def test_what_is_learned_depends_on_the_index_and_counts_answers_alone():
    words = caption_words()
    talks = Talks(words)
    films = talks.batch(5, 2, film=True)
    assert films.patches.shape[1] == FRAMES * PATCHES and words.unk_token_id not in films.tokens
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
