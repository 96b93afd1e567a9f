"""The family captions as it is shipped: right answers on scenes that it never learned from, and drafters that see more and less."""

import json

import pytest
import torch

from engine.__main__ import main
from engine.chat.picture_prompt import shown
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.parts.loading import Models, load_models
from engine.parts.opening import causal_model
from engine.run import RunRequest, open_run
from engine.training.caption_family import right_shares
from presets import family
from tests.drafters.writing import steps_of, text_of, usual

SCENES = range(12)
ASKED = "describe the picture."


@pytest.fixture(scope="module")
def models():
    return load_models(
        family("captions"), {"draft": "draft", "gate": "operator_gate", "msd": "picture_cell"}
    )


def run(models, number, key, sampling=None, **options):
    """The steps of a caption of this scene."""
    target, words, _ = shown(models.target, f"{ASKED} ![](scene:{number})")
    tokens = [*target.leading, *target.tokenizer(words)["input_ids"]]
    seeing = Models(target, models.parts, models.folders)
    return steps_of(seeing, usual(key, seeing, **options), tokens, 48, sampling)


def tokens_a_step(models, key, **options) -> float:
    every = [run(models, number, key, **options) for number in SCENES]
    return sum(len(text_of(steps)) for steps in every) / sum(map(len, every))


def test_held_out_scenes_are_described_rightly():
    """The model card says how often the other questions are answered rightly: less often."""
    shares = right_shares(causal_model(family("captions").target))
    assert shares["caption"] >= 0.95 and shares["content"] >= 0.9, shares


def test_every_drafter_writes_what_the_target_writes(models):
    for number in SCENES[:4]:
        plain = text_of(run(models, number, "none"))
        assert models.target.end_tokens & {plain[-1]}
        for key in ("chain", "specvlm", "specvlm_video", "msd"):
            assert text_of(run(models, number, key)) == plain, key


def test_a_draft_that_sees_more_is_kept_more_often(models):
    blind = tokens_a_step(models, "chain", length=6)
    whole = tokens_a_step(models, "specvlm_video", length=6, share=1.0)
    assert whole > 1.2 * blind
    assert tokens_a_step(models, "msd", nodes=6, depth=6, cost_aware=False) > 1.2 * blind


def test_a_seed_writes_one_text_whatever_the_draft_sees(models):
    sampling = Sampling(1.0, seed=5)
    target, words, _ = shown(models.target, f"{ASKED} ![](scene:3)")
    tokens = [*target.leading, *target.tokenizer(words)["input_ids"]]
    seeing = Models(target, models.parts, models.folders)
    texts = [
        text_of(steps_of(seeing, usual(key, seeing), tokens, 48, sampling, "sampler_match"))
        for key in ("none", "chain", "specvlm_video", "msd")
    ]
    assert all(text == texts[0] for text in texts)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("how many rings are there?", "is asked about a picture"),
        ("![](scene:7)", "Ask something about the picture"),
        ("what? ![](scene:7) ![](scene:8)", "2 pictures"),
        ("what? ![](/etc/passwd)", "holds no picture"),
    ],
)
def test_a_prompt_that_cannot_be_asked_is_one_sentence(prompt, words):
    with pytest.raises(UserError, match=words):
        open_run(RunRequest(prompt, family("captions"), "none"))


def test_a_healed_prompt_has_no_picture():
    with pytest.raises(UserError, match="no end to heal"):
        open_run(RunRequest(f"{ASKED} ![](scene:7)", family("captions"), "none", heal=True))


def test_the_command_line_takes_a_picture(tmp_path, capsys):
    from PIL import Image

    Image.new("RGB", (90, 90), (30, 60, 200)).save(tmp_path / "a.png")
    told = ["run", "--target", "captions", "--drafter", "chain", "--max-new-tokens", "12"]
    asked = ["--prompt", ASKED, "--picture"]
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
