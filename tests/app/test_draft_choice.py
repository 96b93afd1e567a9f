"""A second draft among the parts: it is offered with every drafter that takes one, checked, run, and named."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from app.again import again
from app.controls import request
from app.example_menu import preset_menu
from app.link import read, wish_of
from app.menu import drafter_menu, offer, options_of, plain_pair
from app.settings import model_paths
from engine.errors import UserError
from engine.methods import drafters
from engine.parts.drafts import drafts_among
from engine.parts.loading import ModelPaths
from engine.run import open_run
from engine.training.checkpoint import export_model
from engine.training.new_models import draft_config
from presets import HERE
from tests.engine.family import ran

MODELS = HERE / "models"
SIZES = {"hidden_size": 16, "intermediate_size": 24, "head_dim": 8}
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """An untrained draft with the target's tokens."""
    folder = tmp_path_factory.mktemp("parts") / "draft-tiny"
    tokenizer = AutoTokenizer.from_pretrained(MODELS / "target")
    torch.manual_seed(0)
    config = draft_config(len(tokenizer), tokenizer.eos_token_id, 1, **SIZES, **HEADS)
    export_model(LlamaForCausalLM(config), folder, tokenizer)
    return folder


@pytest.fixture
def two(tiny, monkeypatch):
    """Yield a page with two drafts."""
    for name, value in environment(tiny).items():
        monkeypatch.setenv(name, value)


def environment(*others: Path) -> dict[str, str]:
    """Return the environment of a page with the embedded target, its usual draft, and these further drafts."""
    drafts = ",".join(map(str, (MODELS / "draft", *others)))
    return {"DRAFTSCOPE_TARGET": str(MODELS / "target"), "DRAFTSCOPE_DRAFT": drafts}


def asked(draft: object, drafter: str = "chain", **more: object):
    pair = json.dumps(plain_pair(drafter, {"draft": draft, **more}))
    return request({"prompt": "Once upon a time", "pair": pair, "max_new_tokens": 6})


def choices() -> dict[str, dict | None]:
    """Return drafter -> its option that chooses a draft, or None."""
    return {
        key: next((o for o in entry["options"] if o.get("part")), None)
        for key, entry in drafter_menu().items()
    }


def test_where_there_is_one_draft_nothing_is_to_be_chosen(monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    assert choices() == dict.fromkeys(drafters())


def test_every_drafter_that_takes_a_draft_offers_all_of_them(two):
    found = choices()
    for key, cls in drafters().items():
        assert (found[key] is not None) == (cls.needs.get("draft") == "draft"), key
    found = found["chain"]
    assert found["choices"] == ("draft", "draft-tiny") and found["default"] == "draft"
    assert found["said"] == {"draft": "draft (1.0 M)", "draft-tiny": "draft-tiny (0.1 M)"}


def test_the_embedded_family_offers_the_drafts_of_its_recipes():
    shipped = {"draft", "draft-3m", "pard", "s2d"}
    assert set(choices()["chain"]["choices"]) == shipped
    assert choices()["chain"]["default"] == "draft"


def test_what_is_no_draft_for_the_target_is_not_among_them(tiny, tmp_path):
    paths = ModelPaths(model_paths().target, {"draft": model_paths().parts["draft"]})
    strange, trained, empty = (tmp_path / name for name in ("strange", "trained", "empty"))
    for folder in (strange, trained):
        folder.mkdir()
        for file in tiny.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
    empty.mkdir()
    words = json.loads((strange / "tokenizer.json").read_text("utf-8"))
    first, second = list(words["model"]["vocab"])[300:302]
    vocabulary = words["model"]["vocab"]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (strange / "tokenizer.json").write_text(json.dumps(words), "utf-8")
    config = json.loads((trained / "config.json").read_text("utf-8"))
    config["draftscope_target"] = "0123456789abcdef"
    (trained / "config.json").write_text(json.dumps(config), "utf-8")
    more = {one.name: str(one) for one in (strange, trained, empty, tiny)}
    assert list(drafts_among(paths.with_parts(more))) == ["draft", "draft-tiny"]
    assert drafts_among(model_paths("image")) == {}


def test_the_chosen_draft_guesses_and_the_trace_says_so(two, tiny):
    texts = {}
    for name in ("draft", "draft-tiny"):
        trace = ran(asked(name))
        assert trace.run["drafter"]["parts"] == {"draft": name}
        assert "draft" not in trace.run["drafter"]["options"]
        texts[name] = trace.summary["text"]
        values = read(wish_of(trace, offer()), preset_menu(), offer())
        assert json.loads(values["pair"])["options"]["draft"] == name
        assert again(trace.run, 6).models.parts["draft"].endswith(name)
    assert texts["draft"] == texts["draft-tiny"], "whoever guesses, the text is the target's"
    assert asked("draft-tiny", "dyspec").models.parts["draft"] == str(tiny)
    assert asked("draft").models == model_paths(), "the usual one is the page's own"


@pytest.mark.parametrize("bad", ["no such", "", 3, None, ["draft"], "../draft", "/etc"])
def test_an_unknown_draft_is_refused_in_one_sentence(two, bad):
    with pytest.raises(UserError, match="^There is no draft .*draft-tiny"):
        asked(bad)
    with pytest.raises(UserError, match="no option 'draft'"):
        open_run(asked("draft-tiny", "prompt_lookup"))


def test_an_address_names_a_draft_that_is_there(two):
    for wish, options in (("draft-tiny", {"draft": "draft-tiny"}), ("<b>", {}), ("", {})):
        values = read({"drafter": "chain", "o.draft": wish}, preset_menu(), offer())
        assert json.loads(values["pair"])["options"] == options
    strange = {"key": "chain", "options": {}, "parts": {"draft": "a stranger's"}}
    assert options_of(strange, offer()) == {}
