import itertools

import pytest
import torch

from engine.training.generators import MAKERS, examples
from engine.training.generators.words import Vocabulary
from engine.training.tokenizer import train_tokenizer


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tokenizer():
    """Trained on a handful of generated texts: the shape of the real one, 512 entries."""
    return train_tokenizer(
        (e.text for w in MAKERS for e in itertools.islice(examples(w, 0, Vocabulary()), 60)),
        vocabulary_size=512,
    )
