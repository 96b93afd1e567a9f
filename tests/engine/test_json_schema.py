"""Every promise of a JSON schema is kept, or named and refused in one sentence."""

import json
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from engine.chat.json_schema import JsonSchema
from engine.chat.schema_check import checked
from engine.errors import UserError
from tests.engine.family import embedded_tokenizer

TOKENIZER = embedded_tokenizer()
SIZE, END = len(TOKENIZER), TOKENIZER.eos_token_id
ANYWHERE = {"additionalProperties": False}
ARRAY = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 2}
DEAD_END = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "multipleOf": 5, "maximum": 500},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 1},
    },
    "required": ["score", "tags"],
    "additionalProperties": False,
    "patternProperties": {"^score$": {"type": "integer"}},
}
"""After a comma behind the tags, the grammar engine still expects a name that matches the pattern, though the only one
is taken."""


def constraint(schema, tokenizer=TOKENIZER, vocabulary=SIZE, ends=(END,)) -> JsonSchema:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return JsonSchema(text, tokenizer, vocabulary, frozenset(ends))


def allowed(one: JsonSchema, after=()) -> list[int]:
    return one.allowed(tuple(after)).nonzero().flatten().tolist()


def written(schema, seed: int, most: int = 120) -> tuple[str, bool]:
    """Return (a text of tokens drawn from the allowed ones, whether it came to its end)."""
    one, chance, text = constraint(schema), random.Random(seed), []
    while len(text) < most:
        tokens = one.forced((), 8) or [chance.choice(allowed(one))]
        one.commit(tokens)
        text += tokens
        if text[-1] == END:
            return TOKENIZER.decode(text[:-1]), True
    return TOKENIZER.decode(text), False


def takes(schema, document: str) -> bool:
    """Return whether the schema allows the document."""
    one, path = constraint(schema), []
    for token in [*TOKENIZER(document)["input_ids"], END]:
        mask = one.allowed(tuple(path))
        if mask is None or not mask[token]:
            return False
        path.append(token)
    return True


def chain(length: int, end: dict | None = None) -> dict:
    """Return a schema in which each part refers to the next."""
    parts = {f"a{number}": {"$ref": f"#/a{number + 1}"} for number in range(length)}
    return {"$ref": "#/a0", **parts, f"a{length}": {"type": "null"} if end is None else end}


REFUSED = {
    "nothing": ("", "is empty"),
    "blanks": (" \n", "is empty"),
    "a list": ("[1]", "an object in braces"),
    "a boolean": ("true", "an object in braces"),
    "NaN": ('{"const": NaN}', "NaN is no number"),
    "minus infinity": ('{"minimum": -Infinity}', "-Infinity is no number"),
    "a float without bound": ('{"maximum": 1e999}', "1e999, which is too large"),
    "an integer without bound": ('{"minimum": 18446744073709551616}', "1844.*lie within"),
    "thousands of digits": ('{"maximum": ' + "9" * 5000 + "}", "9{30}….*lie within"),
    "a constant that floats do not hold": ('{"const": 9007199254740993}', "9007199254740993.*bound"),
    "a constant beyond integers": ({"type": "integer", "enum": [1e300]}, r"1e\+300.*bound"),
    "a bound beyond integers": ({"type": "integer", "minimum": 2**63}, "minimum leaves no number"),
    "half a pair": ('{"enum": ["\\ud83c"]}', "half of a pair of surrogates"),
    "a key twice": ('{"type": "string", "type": "integer"}', 'key "type" twice'),
    "deep": ('{"items":' * 100 + "{}" + "}" * 100, "nested more than 64"),
    "a long way": (chain(700), "leads more than 256 levels deep along its references"),
    "very deep": ("[" * 9000, "not valid JSON"),
    "a vendor's key": ({"x-guidance": {"lenient": True}, "uniqueItems": True}, "x-guidance"),
    "unique items": ({"type": "array", "uniqueItems": True}, "uniqueItems is not possible"),
    "a keyword deep within": ({"items": {"anyOf": [{"not": {}}]}}, "not at /items/anyOf/0 is not"),
    "behind a reference": ({"$ref": "#/$defs/a", "$defs": {"a": {"if": True}}}, "if at /.defs/a"),
    "an old draft": ({"$schema": "http://json-schema.org/draft-04/schema#", "const": 3}, "const is no keyword"),
    "another document": ({"$ref": "http://example.com/a"}, "leads out of it"),
    "a file": ({"$ref": "file:///etc/passwd"}, "leads out of it"),
    "nowhere": ({"$ref": "#/nope"}, "/nope"),
    "a look-ahead": ({"type": "string", "pattern": "^(?=.*x)y$"}, r"in the pattern \^\(\?=\.\*x\)y\$, look-around"),
    "a back-reference": ({"type": "string", "pattern": "(a)\\1"}, "backreferences"),
    "a word boundary": ({"type": "string", "pattern": "\\bfoo"}, "Word"),
    "an open group": ({"type": "string", "pattern": "(a"}, "pattern .a, unclosed group"),
    "a flag": ({"type": "string", "pattern": "(?i)a"}, r"\(\?i\) is no part"),
    "operators in a class": ({"type": "string", "pattern": "^[a&&b]$"}, "more than one way"),
    "Rust's end of text": ({"type": "string", "pattern": "a\\z"}, "no part of JSON Schema"),
    "an unknown format": ({"type": "string", "format": "colour"}, "Unknown format: colour"),
    "branches that overlap": (
        {"properties": {"a": {"oneOf": [{"type": "integer"}, {"minimum": 3}]}}},
        "oneOf at /properties/a is possible only where no document can match two",
    ),
    "too few names": ({"type": "object", "minProperties": 2}, "minProperties .*twice"),
    "a control character": ({"properties": {"a": {"const": "\x01"}}}, "control character"),
    "a contradiction": ({"type": "integer", "minimum": 5, "maximum": 4}, "minimum"),
    "an odd bound": ({"type": "integer", "exclusiveMinimum": True}, "exclusiveMinimum is true"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_kept_is_named_in_one_sentence(kind):
    schema, words = REFUSED[kind]
    with pytest.raises(UserError, match=words) as told:
        constraint(schema)
    sentence = str(told.value)
    assert sentence.endswith(".") and sentence.isprintable() and len(sentence) < 300
    assert "coerce_one_of" not in sentence


KEPT = {
    "bounds beyond floats": {"type": "integer", "minimum": 2**53 + 1, "maximum": 2**63 - 1},
    "negative ones": {"type": "integer", "minimum": -(2**62), "maximum": -(2**53) - 1},
    "dates": {"type": "string", "format": "date"},
    "dates with a pattern": {"type": "string", "format": "date", "pattern": "^20.4-02-2"},
    "times of a day": {"type": "string", "format": "date-time"},
    "hosts": {"type": "string", "format": "hostname", "maxLength": 9},
    "one of two types": {
        "oneOf": [{"type": "integer"}, {"$ref": "#/$defs/a"}], "$defs": {"a": ARRAY},
    },
    "one of two ranges": {"type": "integer", "oneOf": [{"maximum": 3}, {"minimum": 4}]},
    "one of two records": {
        "oneOf": [
            {"$ref": "#/$defs/cat"},
            {"type": "object", "properties": {"is": {"const": "dog"}}, "required": ["is"], **ANYWHERE},
        ],
        "$defs": {
            "cat": {"type": "object", "properties": {"is": {"const": "cat"}}, "required": ["is"], **ANYWHERE}
        },
    },
    "a class with a bracket": {"type": "string", "pattern": "^[[a]{3}$"},
    "no unique items": {**ARRAY, "uniqueItems": False},
    "names beside named ones": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "maxProperties": 1,
        "required": ["a"],
    },
    "control characters": {"enum": ["a\x01b", "\x7f"]},
}  # fmt: skip


@pytest.mark.parametrize("kind", KEPT)
def test_documents_keep_every_promise(kind):
    check = Draft202012Validator(KEPT[kind], format_checker=FormatChecker())
    ended = 0
    for seed in range(6):
        text, complete = written(KEPT[kind], seed)
        ended += complete
        if complete:
            check.validate(json.loads(text))
    assert ended > 2, "texts that are not complete show nothing"


OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
JUDGED = [
    (OPEN, '{"b": "x"}', True),
    (OPEN, '{"a": 1, "b": "\\n"}', True),
    (OPEN, '{"\\u0061": "x"}', False),  # the name is a
    ({"type": "string", "format": "date"}, '"2024-02-29"', True),
    ({"type": "string", "format": "date"}, '"2023-02-29"', False),
    ({"type": "string", "format": "date-time"}, '"1900-02-29T00:00:00Z"', False),
    ({"type": "string", "pattern": "^a.b$"}, '"a\\rb"', False),  # a line ends at \r
    ({"type": "string", "pattern": "^a.b$"}, '"a\\tb"', True),
    ({"type": "integer", "maximum": 2**63 - 1}, str(2**63), False),
    ({"type": "integer", "minimum": 2**53 + 1}, str(2**53), False),  # no float: rounded inwards
    ({"type": "integer", "oneOf": [{"maximum": 3}, {"exclusiveMinimum": 3}]}, "3", True),
    ({"type": "object", "properties": {"a": {}}, **ANYWHERE}, '{"a":\n1}', False),
]


@pytest.mark.parametrize(("schema", "document", "may"), JUDGED)
def test_which_documents_may_be_written(schema, document, may):
    assert takes(schema, document) is may


def test_a_draft_may_run_into_a_dead_end_and_the_text_may_not():
    one = constraint(DEAD_END)
    begun = TOKENIZER('{"score": 5, "tags": ["abc"]')["input_ids"]
    one.commit(begun)
    comma = next(token for token in allowed(one) if TOKENIZER.decode([token]) == ",")
    other = next(token for token in allowed(one) if TOKENIZER.decode([token]) == "}")
    (space,) = one.forced((comma,), 1) or [None]
    path = (comma,) if space is None else (comma, space)
    assert one.allowed(path) is None, "nothing may come next"
    assert one.forced((other,), 2) == [END], "the text goes on where the draft is refused"
    with pytest.raises(UserError, match="dead end: no token of this vocabulary"):
        one.commit((*path, other))


def test_a_text_in_a_dead_end_fails_with_its_reason():
    one = constraint(DEAD_END)
    one.commit(TOKENIZER('{"score": 5, "tags": ["abc"],')["input_ids"])
    with pytest.raises(UserError, match="dead end"):
        while True:
            one.commit(one.forced((), 1) or allowed(one)[:1])


def test_a_document_without_an_end_is_given_up_with_a_reason():
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    one = constraint({**node, "additionalProperties": False})
    with pytest.raises(UserError, match="gave up here: "):
        for _ in range(60):
            one.commit(one.forced((), 1) or allowed(one)[:1])


@pytest.mark.parametrize(
    ("ends", "own", "end"),
    [({END, 5}, END, END), ({700, 5}, END, 5), ({700}, END, 700), ({700, 5}, 700, 700)],
)
def test_an_end_of_the_target_ends_a_document_and_no_other_token_does(ends, own, end):
    """The tokenizer's own end of text counts only if it is among them, and then before the others."""

    class Told:
        backend_tokenizer, eos_token_id = TOKENIZER.backend_tokenizer, own

    one = constraint({"type": "integer", "maximum": 99, "minimum": 10}, Told, ends=ends)
    one.commit(TOKENIZER("10")["input_ids"])
    assert one.forced((), 9) == [end] == allowed(one)
    one.commit([end])
    assert one.allowed(()) is None


def test_a_head_may_have_fewer_rows_than_there_are_tokens():
    one = constraint({"type": "boolean"}, vocabulary=SIZE - 1)
    assert one.allowed(()).shape == (SIZE - 1,)
    wide = constraint({"type": "boolean"}, vocabulary=SIZE + 7)
    assert wide.allowed(()).shape == (SIZE + 7,) and allowed(wide) == allowed(one)


def test_a_vocabulary_that_can_begin_no_document():
    """Two special tokens of the embedded one."""
    with pytest.raises(UserError, match="^No token of this vocabulary can begin a document"):
        constraint({"type": "boolean"}, vocabulary=2)


@pytest.mark.parametrize("decoder", [decoders.WordPiece(), None])
def test_the_reason_why_a_tokenizer_cannot_be_used(decoder):
    words = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2, "[E]": 3}, unk_token="[UNK]"))
    if decoder is not None:
        words.decoder = decoder
    fast = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="[E]")
    with pytest.raises(UserError, match="decoder of its tokenizer is neither"):
        constraint({"type": "boolean"}, fast, 4, [3])
    with pytest.raises(UserError, match="end-of-text"):
        constraint({"type": "boolean"}, ends=())


# ---- any schema -------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6),
    st.sampled_from(["integer", "string", "object", "array", "#", "#/$defs/a", "(?=a)", "^[", "date", 2**64, "\ud800"]),
)  # fmt: skip
keywords = st.sampled_from(
    [
        *("type", "const", "enum", "properties", "required", "items", "prefixItems", "anyOf", "allOf", "oneOf"),
        *("$ref", "$defs", "a", "minimum", "maximum", "multipleOf", "pattern", "format", "minLength", "minItems"),
        *("additionalProperties", "patternProperties", "minProperties", "uniqueItems", "not", "$schema", "$id"),
    ]
)  # fmt: skip
anything = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(keywords, below, max_size=4),
    max_leaves=12,
)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(st.dictionaries(keywords, anything, max_size=4))
def test_any_schema_is_used_or_refused_in_one_sentence(schema):
    try:
        one = constraint(json.dumps(schema))
    except UserError as told:
        assert re.fullmatch(r"[^\n]{10,500}\.", str(told))
    else:
        assert allowed(one)


def test_the_check_leaves_an_ordinary_schema_as_it_is():
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["x", 1]}},
        "required": ["a"],
        **ANYWHERE,
    }
    found = checked(json.dumps(schema))
    assert json.loads(found.text) == schema and found.escapes is None


def test_a_way_just_within_the_bound_may_end_in_branches():
    """However deep these are, Python's own bound on calls is kept."""
    deep: dict = {"type": "null"}
    for _ in range(14):
        deep = {"allOf": [deep]}
    branches = {"oneOf": [deep, deep]}
    with pytest.raises(UserError, match="oneOf at"):
        checked(json.dumps(chain(240 - 14, branches)))
    checked(json.dumps(chain(250)))


def test_one_token_is_judged_as_the_mask_judges_it():
    """Without a mask, at every place of a document, and behind one that is no document."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    path, chance = TOKENIZER('{"a": "b c"}')["input_ids"], random.Random(3)
    for length in range(len(path) + 1):
        before = tuple(path[:length])
        mask = constraint(schema).allowed(before)
        tokens = {*chance.sample(range(SIZE), 60), *path, END}
        tested = constraint(schema)
        tested._masks.clear()
        assert {token for token in tokens if tested.allows(before, token)} == {
            token for token in tokens if mask[token]
        }
        assert before not in tested._masks, "no mask was made"
    assert constraint(schema).allows((*path, END), 5), "nothing behind the end is kept"
