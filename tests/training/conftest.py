import itertools
import shutil

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.training import part_recipe, teacher
from engine.training.__main__ import main
from engine.training.checkpoint import export_model
from engine.training.generators import MAKERS, examples
from engine.training.generators.words import Vocabulary
from engine.training.new_models import target_config
from engine.training.tokenizer import train_tokenizer, with_chat
from tests.training.lessons import SMALL, tiny_target

STORY = "Tom had a red ball {}. He lost it in the park, and then he found it under a tree.\n"
WORKLOADS = ["story", "operations", "edit", "template", "arithmetic", "code", "chat"]


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def target():
    return tiny_target()


@pytest.fixture(scope="session")
def tokenizer():
    """A tokenizer of the same shape as the real one, with 512 entries, trained on a handful of generated texts."""
    return train_tokenizer(
        (e.text for w in MAKERS for e in itertools.islice(examples(w, 0, Vocabulary()), 60)),
        vocabulary_size=512,
    )


@pytest.fixture
def hasty(monkeypatch):
    """Make the recipes of parts use little text and few looks."""
    make_hasty(monkeypatch)


def make_hasty(patched):
    patched.setattr(part_recipe, "LOOKS", 4)
    patched.setattr("engine.training.__main__.WINDOWS", 24)
    patched.setattr(teacher, "PROBED", 12)
    patched.setattr(teacher, "PER_WORKLOAD", 1)
    patched.setattr("engine.training.selftext.NEW_TOKENS", dict.fromkeys(WORKLOADS, 4))
    patched.setattr("engine.training.selftext.OTHER_TOKENS", 6)


def write_family(folder, tokenizer, **layers):
    """Corpora of a few sentences, and untrained models of so many layers."""
    torch.manual_seed(0)
    chatting = with_chat(tokenizer)
    for name, count in layers.items():
        config = target_config(len(chatting), chatting.eos_token_id, count, **SMALL)
        export_model(LlamaForCausalLM(config), folder / "models" / name, chatting)
    (folder / "data").mkdir()
    for split in ("train", "valid"):
        stories = "<|endoftext|>".join(STORY.format(f"{split} {i}") for i in range(12))
        (folder / "data" / f"tinystories_{split}.txt").write_text(stories)
    return folder


def flags(folder, data=None):
    """Return the command line's folders as flags. data: the folder of the corpora, if it lies elsewhere."""
    found = {
        "data": data or folder / "data",
        "checkpoints": folder / "run",
        "models": folder / "models",
    }
    return [word for name, path in found.items() for word in (f"--{name}", str(path))]


@pytest.fixture(scope="session")
def family(tokenizer, tmp_path_factory):
    return write_family(tmp_path_factory.mktemp("family"), tokenizer, target=2)


def placed(family, folder):
    """Return a folder with the family's corpora and target, in which everything else is written, and the flags for
    it."""
    (folder / "models").mkdir()
    (folder / "models" / "target").symlink_to(family / "models" / "target")
    return folder, flags(folder, family / "data")


@pytest.fixture
def places(family, tmp_path):
    return placed(family, tmp_path)


@pytest.fixture(scope="session")
def selftext(family, tmp_path_factory):
    """Return the file that the recipe ``text`` writes."""
    path, given = placed(family, tmp_path_factory.mktemp("text"))
    with pytest.MonkeyPatch.context() as patched:
        make_hasty(patched)
        assert main(["text", "--tokens", "60", *given]) == 0
    return path / "run" / "selftext.npz"


@pytest.fixture
def ready(places, hasty, selftext):
    """Return the folder and flags of ``places``, with ``hasty``, and with the target's text already there."""
    (places[0] / "run").mkdir()
    shutil.copy(selftext, places[0] / "run")
    return places
