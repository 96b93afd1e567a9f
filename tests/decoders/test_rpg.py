"""The penalty on repeated structure: what counts as a repetition, and the same text whatever is drafted."""

import ast
import re
from functools import cache

import pytest

from engine.core.sampling import Sampling
from engine.methods.rpg.line_structure import kinds, repeated
from engine.methods.rpg.python_structure import statements
from engine.parts.loading import load_models
from engine.rules import verifier
from presets import family
from tests.drafters.writing import steps_of, text_of, usual

TEXTS = {
    "lines": "Write 4 JSON records with id, name.\n",
    "python": "def add(a, b):\n    return a + b\n\n\ndef total(c, d):\n    return (c +\n            d)\n\n\n",
}
COUNT, DECAY = 40, 0.4


def test_a_line_is_the_kinds_of_its_words():
    assert kinds("    if name == 12:") == kinds("    if other == 7:")
    assert kinds("    if name == 12:") != kinds("if name == 12:")
    assert kinds("x = 'a b'") == kinds('y = "c"')
    assert kinds("return x") != kinds("while x")


@pytest.mark.parametrize(
    "lines, found",
    [
        (["a = 1", "b = 2"], (1, 1)),
        (["a = 1", "b = 2", "c = 3"], (1, 2)),
        (["a = 1", "b = 2", "return c"], (0, 0)),
        (["if a:", "  b()", "if c:", "  d()"], (2, 1)),
        (["", "", ""], (0, 0)),
    ],
)
def test_the_block_that_repeats(lines, found):
    assert repeated([kinds(line) for line in lines]) == found


def parts(text):
    return [rules for rules, _ in statements(text.split("\n"))]


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("a = b + 1", "c = (d +\n  2.5)  # more", True),
        ("a = 'b'", 'c = """d\ne"""', True),
        ("a.b", "c.d", True),
        ("a = b + 1", "a = b - 1", False),
        ("f(a, b)", "f(a)", False),
        ("f(a)", "f(a=a)", False),
    ],
)
def test_a_statement_is_the_rules_that_build_it(one, other, same):
    assert (parts(one) == parts(other)) == same


@pytest.mark.parametrize(
    "text, begins, found",
    [
        ("if a:\n  b = 1\nelif c:\n  d = 2\n\nelif e:\n  # so\n  f = 3", [0, 1, 2, 3, 5, 7], (2, 1)),
        ("match a:\n  case 1:\n    b()\n  case 2:\n    c()", [0, 1, 2, 3, 4], (2, 1)),
        ("try:\n  a()\nexcept A:\n  b()\nexcept B:\n  c()\nfinally:\n  d()", [0, 1, 2, 3, 4, 5, 7], (0, 0)),
        ("@a\ndef f(): pass\n@a\ndef g(): pass", [0, 1, 2, 3], (2, 1)),
        ("for a in b:", [0], (0, 0)),
    ],
)  # fmt: skip
def test_blocks_and_where_their_statements_begin(text, begins, found):
    """The first branch of an if is no elif; the block of the last line is still to come."""
    assert [line for _, line in statements(text.split("\n"))] == begins
    assert repeated(parts(text)) == found


def test_what_is_no_python_is_compared_by_lines():
    for text in ("The sun is shining.", "a = (", "def :", "x = '''", "\0"):
        assert statements([text]) is None
    rows = ["def f():", *(f"    a{n} = {n}" for n in range(130)), "b = 1", "c = 2"]
    assert statements(rows)[-1][1] == len(rows) - 1, "a long text is read from where it begins anew"


@cache
def models():
    return load_models(family(), {"draft": "draft"})


def prompt(text):
    return tuple(models().target.tokenizer(TEXTS[text])["input_ids"])


def written(text, key, rule, sampling, **options):
    return text_of(
        steps_of(models(), usual(key, models(), **options), prompt(text), COUNT, sampling, rule)
    )


WORDS = re.compile(r"(id|attr|arg|name)='[^']*'|value=(\d+)|value='[^']*'")


def plain_structures(lines):
    """Return the structure of each statement that ast finds, without names and values. For a text that does not parse,
    return the kinds of each line."""
    source = "\n".join(lines)
    last = source.rstrip().split("\n")[-1]
    if last.endswith(":"):
        source += f"\n{' ' * (len(last) - len(last.lstrip()) + 1)}pass"
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return [(kinds(line), place) for place, line in enumerate(lines)]
    return [found for found in flat(tree.body) if found[1] < len(lines)]


def flat(body):
    for one in body:
        inner = getattr(one, "body", [])
        head = {name: value for name, value in ast.iter_fields(one) if name not in ("body", "name")}
        yield (str(one.col_offset), WORDS.sub("_", ast.dump(type(one)(**head)))), one.lineno - 1
        yield from flat(inner)


def reference(text):
    """Write the text by a plain script that examines every statement or line anew at every token."""
    target, tokens = models().target, list(prompt(text))
    while len(tokens) < len(prompt(text)) + COUNT and tokens[-1] not in target.end_tokens:
        logits = target.session(len(tokens)).extend(tokens).float()
        pieces = [target.tokenizer.decode(tokens[:end]) for end in range(len(tokens) + 1)]
        *lines, begun = pieces[-1].split("\n")
        found = plain_structures(lines)
        size, times = repeated([structure for structure, _ in found])
        if size and not begun.strip():
            line = found[-size][1]
            start = (
                len("\n".join([*lines[:line], ""])) + len(lines[line]) - len(lines[line].lstrip())
            )
            first = next(end for end in range(len(tokens)) if len(pieces[end + 1]) > start)
            logits[tokens[first]] *= DECAY**times if logits[tokens[first]] > 0 else DECAY**-times
        tokens.append(int(logits.argmax()))
    return tokens[len(prompt(text)) :]


@pytest.mark.parametrize("text", TEXTS)
def test_every_drafter_writes_the_text_of_the_plain_script(text):
    rule = lambda: verifier("rpg", {"decay": DECAY})
    expected = reference(text)
    assert expected != written(text, "none", verifier("greedy"), Sampling())
    for key in ("none", "chain", "prompt_lookup"):
        assert written(text, key, rule(), Sampling()) == expected
    drawn = Sampling(0.8, seed=4)
    assert written(text, "chain", rule(), drawn) == written(text, "none", rule(), drawn)
