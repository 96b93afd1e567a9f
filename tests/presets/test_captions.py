"""The family captions as it is shipped: right answers on scenes and films that it never learned from, and drafters that see more and
less."""

import json

import pytest
import torch

from engine.__main__ import main
from engine.chat.picture_prompt import shown
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter
from engine.parts.loading import Models, load_models
from engine.parts.opening import causal_model
from engine.run import RunRequest, open_run
from engine.scenes.film_talk import FILM_KINDS
from engine.scenes.scene_talk import KINDS
from engine.training import caption_family
from engine.training.caption_family import right_shares
from presets import family
from tests.drafters.writing import steps_of, text_of, usual

NUMBERS = range(4)
ASKED = {
    "picture": "describe the picture. ![](scene:{})",
    "film": "describe the film. ![](film:{})",
}
SEEING = ("specvlm", "specvlm_video", "msd", "flash_mm")


@pytest.fixture(scope="module")
def models():
    needs = {role: kind for key in SEEING for role, kind in drafter(key).needs.items()}
    return load_models(family("captions"), needs)


def run(models, prompt, key, sampling=None, rule=None, **options):
    """The steps of the answer."""
    target, words, _ = shown(models.target, prompt)
    tokens = [*target.leading, *target.tokenizer(words)["input_ids"]]
    seeing = Models(target, models.parts, models.folders)
    return steps_of(seeing, usual(key, seeing, **options), tokens, 56, sampling, rule)


def tokens_a_step(models, asked, key, **options) -> float:
    every = [run(models, ASKED[asked].format(number), key, **options) for number in NUMBERS]
    return sum(len(text_of(steps)) for steps in every) / sum(map(len, every))


def test_held_out_scenes_and_films_are_answered_rightly(monkeypatch):
    """The model card has the shares over more of them. A film is eight pictures, so of films there are fewer, and a
    lower bound."""
    model = causal_model(family("captions").target)
    for count, scenes, films, least in ((128, KINDS, (), 0.95), (32, (), FILM_KINDS, 0.5)):
        for name, value in {"MEASURED": count, "KINDS": scenes, "FILM_KINDS": films}.items():
            monkeypatch.setattr(caption_family, name, value)
        shares = right_shares(model)
        assert shares.keys() == {*scenes, *films} and min(shares.values()) >= least, shares


@pytest.mark.parametrize("asked", ASKED)
def test_every_drafter_writes_what_the_target_writes(models, asked):
    for number in NUMBERS[:2]:
        prompt = ASKED[asked].format(number)
        plain = text_of(run(models, prompt, "none"))
        assert models.target.end_tokens & {plain[-1]}
        for key in ("chain", *SEEING):
            assert text_of(run(models, prompt, key)) == plain, key


@pytest.mark.parametrize("asked", ASKED)
def test_a_draft_that_sees_more_is_kept_more_often(models, asked):
    blind = tokens_a_step(models, asked, "chain", length=6)
    whole = tokens_a_step(models, asked, "specvlm_video", length=6, share=1.0)
    assert whole > 1.2 * blind
    assert tokens_a_step(models, asked, "msd", nodes=6, depth=6, cost_aware=False) > 1.2 * blind


def test_a_seed_writes_one_text_whatever_the_draft_sees(models):
    for prompt in (ASKED["picture"].format(3), ASKED["film"].format(3)):
        texts = [
            text_of(run(models, prompt, key, Sampling(1.0, seed=5), "sampler_match"))
            for key in ("none", "chain", *SEEING)
        ]
        assert all(text == texts[0] for text in texts)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("how many rings are there?", "is asked about a picture"),
        ("![](scene:7)", "Ask something about the picture"),
        ("what? ![](scene:7) ![](scene:8)", "2 pictures"),
        ("what? ![](/etc/passwd)", "holds no picture"),
        ("what moves? ![](film:x)", "A film is a number"),
    ],
)
def test_a_prompt_that_cannot_be_asked_is_one_sentence(prompt, words):
    with pytest.raises(UserError, match=words):
        open_run(RunRequest(prompt, family("captions"), "none"))


def test_a_healed_prompt_has_no_picture():
    with pytest.raises(UserError, match="no end to heal"):
        open_run(RunRequest(ASKED["picture"].format(7), family("captions"), "none", heal=True))


def test_the_command_line_takes_a_picture(tmp_path, capsys):
    from PIL import Image

    Image.new("RGB", (90, 90), (30, 60, 200)).save(tmp_path / "a.png")
    told = ["run", "--target", "captions", "--drafter", "chain", "--max-new-tokens", "12"]
    asked = ["--prompt", "describe the picture.", "--picture"]
    trace = tmp_path / "run.ndjson"
    assert main([*told, *asked, str(tmp_path / "a.png"), "--trace", str(trace)]) == 0
    line = json.loads(trace.read_text("utf-8").splitlines()[0])
    assert line["sees"]["side"] == 48 and "data:image/webp" in line["prompt"]["text"]
    assert capsys.readouterr().out
    assert main([*told, *asked, str(tmp_path / "none.png")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_weights_are_few_whole_numbers(models):
    """What is read is what was measured: matrices of at most 63 values a row."""
    weight = models.target.model.model.layers[0].mlp.up_proj.weight
    assert len(torch.unique(weight[0])) <= 63
