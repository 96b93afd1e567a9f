"""A target that sees a picture or a film: its text is that of a plain loop over rows of patches and words, whatever drafts, and
whatever of the picture the draft sees."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter
from engine.methods.shared.operator_gate import OPERATORS, TEXT_ONLY, OperatorGate
from engine.methods.shared.seen_patches import TITLE
from engine.model.captions import CaptionsForCausalLM, patches_of, pooled
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_parts
from engine.rules import verifier
from tests.drafters.writing import built, steps_of, text_of
from tests.grids import some
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of
from tests.verifiers.step_errors import step_error

FIRST, SIDE, PATCH = 5, 12, 4
PATCHES = (SIDE // PATCH) ** 2
WORDS = [20, 31, 44, 31, 20]
FRAMES = 3
SHOWN = {"picture": 1, "film": FRAMES}
"""What the model is shown -> its frames."""
NEW = 20
SEEING = ["specvlm_video", "specvlm", "msd", "flash_mm"]


def module_of(seed: int = 0, side: int = SIDE, **changes) -> CaptionsForCausalLM:
    config = config_of("captions")
    usual = {"picture_side": side, "patch_side": PATCH, "first_patch": FIRST, "frames": FRAMES}
    sizes = usual | changes
    for name, value in sizes.items():
        setattr(config, name, value)
    return random_module(config, seed)


def picture(seed: int, side: int = SIDE, frames: int = 1) -> np.ndarray:
    shape = (frames * side, side, 3)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def prompt_of(frames: int) -> list[int]:
    return [*range(FIRST, FIRST + frames * PATCHES), *WORDS]


def opened(module: CaptionsForCausalLM):
    return language_model(copy.deepcopy(module), None, "tiny captions")


@torch.no_grad()
def plain(module: CaptionsForCausalLM, pixels: np.ndarray, count: int) -> list[int]:
    """Return the module's greedy text by a plain loop: patches are cut out one by one, projected, and put in front of
    the words; each token takes a whole pass."""
    rows = []
    for frame in range(len(pixels) // SIDE):
        seen = pixels[frame * SIDE :][:SIDE]
        for place in range(PATCHES):
            row, column = divmod(place, SIDE // PATCH)
            cut = seen[row * PATCH :, column * PATCH :][:PATCH, :PATCH]
            numbers = torch.tensor([channel / 127.5 - 1 for channel in cut.reshape(-1).tolist()])
            own = module.model.embed_tokens.weight[FIRST + place] + module.frames.weight[frame]
            rows.append(own + 0.25 * module.patches(numbers))
    table, written = module.model.embed_tokens.weight.clone(), []
    table[FIRST : FIRST + len(rows)] = torch.stack(rows)  # also where it writes such a token itself
    while len(written) < count:
        whole = table[[*prompt_of(len(pixels) // SIDE), *written]][None]
        logits = LlamaForCausalLM.forward(module, inputs_embeds=whole, use_cache=False).logits
        written.append(int(logits[0, -1].argmax()))
    return written


@pytest.fixture(scope="module")
def module():
    return module_of()


@pytest.fixture(scope="module")
def every(module):
    """Return, for a picture and for a film, the target that sees it, with a draft of its kind and small random
    parts."""
    seeing = {name: opened(module).seeing(picture(1, frames=SHOWN[name])) for name in SHOWN}
    several = tiny_parts(seeing["picture"], map(drafter, SEEING), language_model_of)
    parts = {**several.parts, "draft": opened(module_of(4))}
    return {name: Models(target, parts) for name, target in seeing.items()}


@pytest.fixture(scope="module")
def models(every):
    return every["picture"]


def language_model_of(module):
    return language_model(module, None, "tiny part", lean=False)


@pytest.fixture(scope="module")
def texts(module):
    """Return the text of the plain loop for the picture and for the film."""
    return {name: plain(module, picture(1, frames=SHOWN[name]), NEW) for name in SHOWN}


@pytest.mark.parametrize(
    "key", ["none", "chain", "dyspec", "prompt_lookup", "suffix", "jacobi", "swift", *SEEING]
)
@pytest.mark.parametrize("shown", SHOWN)
def test_every_drafter_writes_the_text_of_a_plain_loop(every, texts, shown, key):
    written = steps_of(every[shown], key, prompt_of(SHOWN[shown]), NEW)
    assert text_of(written) == texts[shown]


@pytest.mark.parametrize("operator", range(len(OPERATORS)))
def test_the_text_stays_whatever_the_gate_picks(every, texts, operator):
    gate = every["film"].part("gate")
    chosen = gate.out.bias.clone()
    try:
        gate.out.bias[operator] += 100
        written = steps_of(every["film"], "specvlm", prompt_of(FRAMES), NEW)
    finally:
        gate.out.bias.copy_(chosen)
    assert text_of(written) == texts["film"]
    rows = {shown.title: shown for shown in written[0].tree.exhibits if hasattr(shown, "title")}
    assert (TITLE in rows) == (OPERATORS[operator] != TEXT_ONLY)


def test_another_picture_is_another_text(module):
    seen = [picture(1), picture(2), picture(1, frames=FRAMES)]
    texts = [plain(module, pixels, NEW) for pixels in seen]
    assert len(set(map(tuple, texts))) == len(texts)
    model = opened(module)
    for at in (0, 1, 2, 0):
        shown, prompt = model.seeing(seen[at]), prompt_of(len(seen[at]) // SIDE)
        assert text_of(steps_of(Models(shown), "none", prompt, NEW)) == texts[at]


def test_the_patches_are_cut_row_by_row():
    pixels = torch.arange(SIDE * SIDE * 3, dtype=torch.uint8).view(SIDE, SIDE, 3)
    cut = patches_of(pixels, PATCH)
    assert cut.shape == (PATCHES, 3 * PATCH * PATCH)
    second = pixels[:PATCH, PATCH : 2 * PATCH].flatten() / 127.5 - 1
    torch.testing.assert_close(cut[1], second)


def test_pooled_rows_are_means_of_neighbours():
    rows = torch.arange(16.0)[:, None]
    assert pooled(rows, 4)[:, 0].tolist() == [1.5, 5.5, 9.5, 13.5]


def test_what_is_kept_of_the_patches_lies_in_all_rows_and_columns_of_each_frame():
    kept = OperatorGate(8, 8, 3).kept(2 * 9)
    assert [divmod(place, 3) for place in kept] == [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]


TINY = {"side": 2 * PATCH, "vocab_size": 6, "first_patch": 2}


def tiny_step(key: str):
    """Return (error, target): a function that returns how far the law of a step is from the target's, enumerated, and
    the target."""
    prompt = (2, 3, 4, 5, 0, 1, 3)  # the last is a word, and a patch as well
    target = opened(module_of(7, **TINY)).seeing(picture(3, TINY["side"]))
    several = tiny_parts(target, [drafter(key)], language_model_of)
    models = Models(target, {**several.parts, "draft": opened(module_of(8, **TINY))})
    options = {"nodes": 2, "depth": 2} if key == "msd" else {"length": 2}

    def error() -> float:
        drafts = partial(built, key, models, **options)
        return step_error(models, drafts, verifier("rejection"), Sampling(1.0), prompt)

    return error, target


@pytest.mark.parametrize("key", ["chain", *SEEING])
def test_a_step_has_the_law_of_the_target(key):
    error, _ = tiny_step(key)
    assert error() < 1e-5


@pytest.mark.parametrize("key", some(["chain", *SEEING], ("chain", "msd").__contains__))
def test_where_the_pass_over_a_draft_sees_another_picture_the_law_is_another(key):
    """That pass is the same for all chains; msd drafts a tree."""
    error, target = tiny_step(key)
    table, usual = target.model.model.embed_tokens, target.model.model.embed_tokens.forward
    other = opened(module_of(7, **TINY)).seeing(picture(4, TINY["side"])).model.model.embed_tokens
    table.forward = lambda rows: other(rows) if rows.shape[-1] == 3 else usual(rows)
    assert error() > 5e-3


def test_the_draft_sees_what_the_target_looks_at(models):
    """The patches are those with most of the attention, computed here from the module's own weights of attention."""
    share = 4 / PATCHES
    made = built("specvlm_video", models, share=share, length=2)
    steps = steps_of(models, made, prompt_of(1), 4)
    (shown,) = [one for one in steps[0].tree.exhibits if getattr(one, "kind", "") == "matrix"]
    values = [value for row in shown.values for value in row]
    assert sum(value > 0 for value in values) == 4
    module = copy.deepcopy(models.target.model)
    module.set_attn_implementation("eager")
    with torch.no_grad():
        rows = models.target.model.model.embed_tokens(torch.tensor([prompt_of(1)]))
        told = module(inputs_embeds=rows, output_attentions=True, use_cache=False).attentions
    scores = torch.stack([one[0, :, PATCHES:, :PATCHES].mean((0, 1)) for one in told]).mean(0)
    assert values[int(scores.argmax())] == max(values)


def test_a_question_needs_a_picture(module):
    with pytest.raises(UserError, match="is asked about a picture, and there is none"):
        _ = opened(module).leading
