"""The recipe of the parts: a toy learns, is stopped and goes on, for the family's target and for a stranger's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from engine.errors import UserError
from engine.parts.digest import FIELD, digest_of
from engine.training import outlay, part_recipe, recipes, selftext, students, teacher
from engine.training.__main__ import main
from engine.training.checkpoint import export_tokenizer
from engine.training.generators import MAKERS
from engine.training.new_models import target_config
from tests.outside import outside_methods
from tests.training import toy_student
from tests.training.lessons import SMALL
from tests.training.toy_student import Matrix


class Toy(Matrix):
    def loss(self, part, lesson):
        if lesson.index == POWER["fails at"]:
            raise KeyboardInterrupt
        return super().loss(part, lesson)

    def measured(self, part, lessons):
        return {"texts": sum(1 for _ in lessons)}


POWER = {"fails at": None}
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def registered(monkeypatch, hasty):
    monkeypatch.setattr(recipes, "student_class", lambda key: Toy)
    monkeypatch.setattr(part_recipe, "student_class", lambda key: Toy)
    monkeypatch.setitem(recipes.RECIPES, "toy", lambda args: part_recipe.train_part(args, "toy"))


SHORT = ["--rows", "2", "--length", "32", "--tokens", "2048"]


def test_a_part_learns_and_one_that_was_stopped_ends_where_it_does(ready, monkeypatch, capsys):
    path, given = ready
    assert main(["toy", *SHORT, *given]) == 0
    told = capsys.readouterr().out
    assert told.index("memory: about") < told.index("time: a batch takes") < told.index("accepted")
    looks = json.loads((path / "run" / "part-toy.json").read_text())["looks"]
    assert [look["done"] for look in looks] == [i / 4 for i in range(5)]
    own = len(selftext.load(path / "run" / "selftext.npz").tokens)
    assert looks[-1]["tokens"] == 2048 and looks[-1]["epochs"] == pytest.approx(1024 / own)
    assert looks[-1]["loss"] < 0.9 * looks[1]["loss"]
    made = path / "models" / "parts" / "toy"
    config = json.loads((made / "config.json").read_text())
    assert config == {FIELD: digest_of(path / "models" / "target"), "texts": 1 + len(MAKERS)}
    assert main(["toy", "--seed", "1", *SHORT, *given]) == 2
    assert "begun with other settings" in the_sentence(capsys)

    monkeypatch.setitem(POWER, "fails at", 19)
    with pytest.raises(KeyboardInterrupt):
        main(["toy", "--name", "halves", *SHORT, *given])
    monkeypatch.setitem(POWER, "fails at", None)
    assert main(["toy", "--name", "halves", *SHORT, *given]) == 0
    # sums are rounded by how memory lies; a batch read twice or left out would change the loss by several percent
    again = json.loads((path / "run" / "part-halves.json").read_text())["looks"]
    assert again[0] == looks[0] and len(again) == len(looks)
    for one, other in zip(again[1:], looks[1:], strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    weights = [load_file(one / "model.safetensors") for one in (made, made.parent / "halves")]
    torch.testing.assert_close(weights[0]["weight"], weights[1]["weight"], atol=1e-3, rtol=1e-2)


def test_a_method_from_outside_brings_its_recipe(ready, tmp_path, monkeypatch, capsys):
    """One folder, and nothing else was changed. A bad recipe is left out with a sentence."""
    path, given = ready
    recipe = Path(toy_student.__file__).read_text("utf-8")
    for name, text in (
        ("mine", recipe.replace('"toy"', '"mine"')),
        ("other_key", recipe),
        ("no_student", "STUDENT = 3"),
        ("text", recipe.replace('"toy"', '"text"')),
        ("strange", recipe.replace('"toy"', '"strange"') + 'STUDENT.options = ("size",)'),
        ("raises", "raise ValueError('broken')"),
    ):
        (tmp_path / "outside" / name).mkdir(parents=True)
        (tmp_path / "outside" / name / "recipe.py").write_text(text, "utf-8")
    with outside_methods(tmp_path / "outside", monkeypatch):
        found, left_out = recipes._outside()  # as when the module is imported
        for module in (recipes, part_recipe):
            monkeypatch.setattr(module, "student_class", students.student_class)
        monkeypatch.setattr(recipes, "RECIPES", found | recipes.RECIPES)
        monkeypatch.setattr(recipes, "LEFT_OUT", left_out)
        assert main(["mine", *SHORT, *given]) == 0
    made = path / "models" / "parts" / "mine"
    config = json.loads((made / "config.json").read_text())
    assert config == {FIELD: digest_of(path / "models" / "target")}
    assert load_file(made / "model.safetensors")["weight"].shape == (32, 32)
    told = capsys.readouterr().err.splitlines()
    reasons = [line for line in told if line.startswith("left out: ")]
    assert len(reasons) == 5 and any("broken" in line for line in reasons)


def the_sentence(capsys) -> str:
    """Return the one line on standard error after the progress bars of transformers."""
    told = capsys.readouterr().err.rpartition("error: ")[2]
    assert told.count("\n") == 1
    return told


@pytest.mark.parametrize(
    "wrong, told",
    [
        (["--option", "colour=red"], "no option 'colour'"),
        (["--option", "colour"], "NAME=VALUE"),
        (["--target", "nowhere"], "no folder of a model"),
        (["--length", "5000"], "windows of 32 to 1024 tokens"),
        (["--rows", "0"], "one at least"),
        ([], "run the recipe `text` first"),
    ],
)
def test_mistakes_are_told_in_one_sentence(places, capsys, wrong, told):
    assert main(["toy", *SHORT, *places[1], *wrong]) == 2
    assert told in the_sentence(capsys)


def test_too_large_a_batch_is_refused_before_anything_is_computed():
    student, part = (
        Toy(LlamaForCausalLM(target_config(512, 0, 2, **SMALL)), {}),
        torch.nn.Linear(1, 1),
    )
    told = outlay.check_memory(outlay.memory(student, part, 1000), CPU)
    assert "a batch of 1,000 tokens" in told
    with pytest.raises(UserError, match=r"Smaller batches .* need less\."):
        outlay.check_memory(outlay.memory(student, part, 10**9), CPU)


def test_any_other_target_can_be_named(places, tokenizer, tmp_path):
    """The target has another architecture and no corpora; its prompts are lines of a file."""
    _, given = places
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        eos_token_id=tokenizer.eos_token_id,
    )
    stranger = tmp_path / "stranger"
    Qwen2ForCausalLM(config).save_pretrained(stranger)
    export_tokenizer(tokenizer, stranger)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"Copy: {i} and {i + 1}" for i in range(30)))
    named = ["--target", str(stranger), "--prompts", str(prompts), "--data", "nowhere"]
    assert main(["text", "--tokens", "400", *given, *named]) == 0
    assert main(["toy", *SHORT, *given, *named]) == 0
    (work,) = (tmp_path / "run" / "targets").iterdir()
    assert work.name == f"stranger-{digest_of(stranger)}"
    assert json.loads((work / "parts" / "toy" / "config.json").read_text())["texts"] == 3
    assert not (tmp_path / "models" / "parts").exists()


def test_prompts_that_are_held_out_are_not_written_after(tokenizer, tmp_path):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"Copy: {i} and {i + 1}" for i in range(30)))
    export_tokenizer(tokenizer, tmp_path / "target")
    asked = teacher.Teacher(tmp_path / "target", tmp_path, tmp_path, tmp_path, prompts)
    stream = asked.prompt_streams(0)["given"]
    drawn = {tuple(next(stream)) for _ in range(200)}
    held_out = {tuple(prompt) for prompt in asked._held_out()}
    assert len(drawn) == 27 and len(held_out) == 3 and not drawn & held_out


def test_the_accepted_length_is_walked_as_a_run_would(monkeypatch):
    """Eight tokens after a prompt of two are written in steps of 1 + 2, 1 + 0 and 1 + 3 tokens; the last is cut."""

    class Known:
        def accepted(self, part, lesson):
            return torch.tensor([[9, 2, 9, 9, 0, 5, 9, 9, 9, 9]])

    found = part_recipe.accepted_length(
        Known(), torch.nn.Linear(1, 1), [None], [(2, list(range(10)))]
    )
    assert found == pytest.approx(8 / 3)


def test_the_list_of_recipes_has_every_part():
    for key in (*students.students(), *students.other_recipes()):
        assert key in recipes.RECIPES and f"    {key}" in recipes.described()
