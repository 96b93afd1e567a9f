"""A part knows the target it was trained for, by the digest of the target's weights."""

import json

import pytest

from engine.errors import UserError
from engine.parts.digest import FIELD, check_belongs, digest_of


@pytest.fixture
def folders(tmp_path):
    """Return (part, its target, another target)."""
    made = [tmp_path / name for name in ("part", "target", "other")]
    for folder in made:
        folder.mkdir()
    for folder, weights in zip(made[1:], (b"weights", b"other weights"), strict=True):
        (folder / "model.safetensors").write_bytes(weights)
    (made[0] / "config.json").write_text(json.dumps({FIELD: digest_of(made[1])}))
    return made


def test_a_digest_is_of_the_weights_and_of_nothing_else(folders):
    _, target, other = folders
    digest = digest_of(target)
    assert len(digest) == 16 and int(digest, 16) >= 0
    (target / "config.json").write_text("{}")
    assert digest_of(target) == digest != digest_of(other)
    (other / "model.safetensors").write_bytes(b"weights")
    assert digest_of(other) == digest, "wherever they lie, and though they were others before"
    (other / "more.safetensors").write_bytes(b"")
    (target / "model.safetensors").write_bytes(b"Weights")
    assert digest_of(target) != digest


def test_its_own_target_is_taken_and_another_is_one_sentence(folders):
    part, target, other = folders
    check_belongs(part, target, "adapter")
    with pytest.raises(UserError) as caught:
        check_belongs(part, other, "adapter")
    message = str(caught.value)
    assert message.startswith("The adapter in part ") and message.endswith(" than other.")
    assert "\n" not in message and str(part) not in message


@pytest.mark.parametrize(
    "config", ["{}", "[]", "{broken", "[" * 100_000, None, '{"draftscope_target": null}']
)
def test_a_part_that_names_no_target_is_not_checked(folders, config):
    part, _, other = folders
    (part / "config.json").unlink()
    if config is not None:
        (part / "config.json").write_text(config)
    check_belongs(part, other, "adapter")


def test_a_target_that_is_no_folder_is_not_checked(folders, tmp_path):
    part, target, _ = folders
    check_belongs(part, "someone/a-model-of-the-hub", "adapter")
    (target / "model.safetensors").unlink()
    assert digest_of(target) is None
    check_belongs(part, target, "adapter")
