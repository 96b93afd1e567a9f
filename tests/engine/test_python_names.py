"""The monitor of Python names: which tokens it leaves, and texts that keep to it."""

import pytest

from engine.chat.python_names import PythonNames, names_at
from engine.errors import UserError
from engine.run import RunRequest, open_run
from presets import family
from tests.engine.family import embedded_tokenizer, trace_of

TOKENIZER = embedded_tokenizer()
SIZE = len(TOKENIZER)
HEAD = "import math\n\n\ndef other(hidden):\n    return hidden\n\n\ndef area(width, height):\n    total = 2\n"


def ids(text):
    return TOKENIZER(text, add_special_tokens=False)["input_ids"]


def may(before: str, after: str) -> bool:
    """Return whether the text may go on so. The masks of all its places must agree with tests of single tokens."""
    constraint, path = PythonNames(before, TOKENIZER, SIZE), ()
    for token in ids(after):
        single = PythonNames(before, TOKENIZER, SIZE).allows(path, token)
        mask = constraint.allowed(path)
        assert single == (mask is None or bool(mask[token]))
        if not single:
            return False
        path = (*path, token)
    return True


@pytest.mark.parametrize(
    "line, after, good",
    [
        ("    return ", "width * height\n", True),
        ("    return", " width\n", True),
        ("    return ", "depth\n", False),
        ("    return ", "hidden\n", False),
        ("    return ", "math.pi\n", True),
        ("    total = width ", "* depth\n", False),
        ("    total = width * he", "ight\n", True),
        ("    total = width * he", "\n", False),
        ("    for side in ", "range(total):\n", True),
        ("    return ", "[n for n in [width, depth]]\n", True),
        ("    return ", "'depth'\n", True),
        ("    # not ", "depth\n", True),
        ("    return ", "not total\n", True),
        ("    return ", "12\n", True),
    ],
)
def test_only_names_that_exist_may_be_used(line, after, good):
    assert may(HEAD + line, after) == good


def test_where_nothing_can_be_told_every_token_may_come():
    for text in ("def broken(:\n    return ", 'x = """\nreturn ', "total = (\n    ", "\0\nreturn "):
        assert names_at(text) is None
        assert PythonNames(text, TOKENIZER, SIZE).allowed(()) is None


PROMPT = "# Return the sum of the columns.\ndef add(rows, columns):\n    return "


def written(**changes):
    return trace_of(PROMPT, max_new_tokens=6, temperature=3.0, **changes)


def test_a_hot_text_uses_only_names_that_exist():
    """Behind the same words, the unheld text goes astray; awrs writes the text of sampler match."""
    free = strays = 0
    for seed in range(3):
        held = written(drafter="chain", verifier="sampler_match", seed=seed, python_names=True)
        assert held.run["constraint"] == {
            "key": "python_names",
            "text": "",
            "law": "masked decoding",
        }
        first = (PROMPT + held.summary["text"]).split("\n")[2]
        strays += bool(first.strip() != "return" and unknown(first))
        loose = written(drafter="none", verifier="sampler_match", seed=seed)
        free += bool(unknown((PROMPT + loose.summary["text"]).split("\n")[2]))
        tested = written(drafter="chain", verifier="awrs", seed=seed, python_names=True)
        assert tested.summary["text"] == held.summary["text"]
    assert strays == 0 < free, "without a monitor none was used: this would not show a fault"


def unknown(line: str) -> bool:
    """Return whether the value in this line begins with a name that does not exist."""
    word = line.strip().removeprefix("return").strip()
    name = word.split(" ")[0].split(".")[0].split("(")[0].split("[")[0]
    return name.isidentifier() and name not in names_at(PROMPT).names


def test_a_text_has_one_constraint():
    with pytest.raises(UserError, match="either to a JSON schema or"):
        open_run(RunRequest(PROMPT, family(), json_schema="{}", python_names=True))


@pytest.mark.parametrize("rule", ["sampler_match", "asap", "awrs"])
def test_a_prompt_that_ends_in_an_unknown_name_is_one_sentence(rule):
    """No token may come: every one would end the name, or go on with it."""
    with pytest.raises(UserError, match="^Only names that exist .* none of them begins as .*[.]$"):
        trace_of(
            "def area(width):\n    return zz", drafter="chain", verifier=rule, temperature=1.0,
            python_names=True, max_new_tokens=4,
        )  # fmt: skip
