"""The recipe of the step scorer: its labels, and a part that can be opened."""

from types import SimpleNamespace

from engine.methods.a_star import recipe as a_star_recipe
from engine.methods.a_star.part import StepScorer, told
from engine.methods.a_star.recipe import Sums, Worked, texts
from presets import family
from tests.engine.family import embedded_module, embedded_tokenizer


def test_a_step_is_right_as_long_as_the_text_is_the_generators():
    """Right arithmetic with a digit of another sum is wrong."""
    prompt, truth = next(texts(0, 1, True))
    first, *rest = truth.split("\n")
    place = next(at for at, letter in enumerate(rest[0]) if letter.isdigit())
    digit = "7" if rest[0][place] != "7" else "6"
    said = "\n".join([first, rest[0][:place] + digit + rest[0][place + 1 :], *rest[1:]])
    tokens, end = embedded_tokenizer(), embedded_tokenizer().eos_token_id
    sums = Sums(embedded_module(), tokens)
    for answer, known in ((truth, [True] * (1 + len(rest))), (said, [True] + [False] * len(rest))):
        one = Worked(tokens(prompt).input_ids, [*tokens(answer).input_ids, end], truth)
        assert [right for _, right in sums.labels(one)] == known


def test_planted_sums_differ_in_one_digit():
    for one in Sums(embedded_module(), embedded_tokenizer()).planted(3, 12, True):
        said = embedded_tokenizer().decode(one.answer, skip_special_tokens=True)
        pairs = [pair for pair in zip(said, one.truth, strict=True) if pair[0] != pair[1]]
        assert len(pairs) == 1 and "".join(pairs[0]).isdigit()


def test_what_is_told_of_a_text():
    assert told([-1.0, -4.0, -0.5, -2.0], 2).tolist() == [-4.0, -2.0, -7.5, -2.5]


def test_the_recipe_writes_a_part_that_knows_a_wrong_token(monkeypatch, tmp_path):
    for name, count in (("DRAWN", 4), ("PLANTED", 24), ("HELD_OUT", 4)):
        monkeypatch.setattr(a_star_recipe, name, count)
    folder = tmp_path / "part"
    a_star_recipe.recipe(SimpleNamespace(target=family().target, seed=1, output=folder, name=None))
    scorer = StepScorer.read(folder).requires_grad_(False)
    assert scorer.right([-0.1] * 12, 6) > 0.6
    assert scorer.right([-0.1] * 11 + [-9.0], 6) < 0.4
