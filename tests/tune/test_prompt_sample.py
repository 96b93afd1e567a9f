"""A sample of a file of any size: what is read, what is drawn, what is refused."""

from collections import Counter
from itertools import islice

import pytest

from engine.errors import UserError
from engine.tune import prompt_sample
from engine.tune.prompt_sample import PromptText, Sample, prompts_of


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "p.jsonl",
            '{"prompt": "a\\nb", "kind": "x"}\n\n{"text": "c", "category": "y"}\n{"text": 3}\n',
        ),
        ("p.csv", 'category,prompt\r\nx,"a\nb"\r\ny,c\r\nz,\r\n'),
    ],
)
def test_a_prompt_has_a_text_and_perhaps_a_kind(name, content, tmp_path):
    file = tmp_path / name
    file.write_text("\ufeff" + content, "utf-8", newline="")
    first, second, third = prompts_of(file)
    assert (first, second) == (PromptText("a\nb", "x"), PromptText("c", "y"))
    sample = Sample.of_file(file)
    assert not third.text and (sample.given, sample.empty, len(sample.prompts)) == (3, 1, 2)


def test_plain_text_holds_a_prompt_on_each_line(tmp_path):
    file = tmp_path / "p.txt"
    file.write_text("one\n\n  two\r\nthree", "utf-8", newline="")
    assert [prompt.text for prompt in prompts_of(file)] == ["one", "  two", "three"]


def test_a_large_file_is_streamed():
    """No more than the sample is held, and no line is read before it is asked for."""
    alive = Counter()

    class Text(str):
        def __init__(self, _):
            alive["now"] += 1
            alive["most"] = max(alive["most"], alive["now"])

        def __del__(self):
            alive["now"] -= 1

    sample = Sample.of((PromptText(Text(i), "k") for i in range(100_000)), seed=3, most=10)
    assert sample.given == 100_000 and len(sample.prompts) == 10 and alive["most"] <= 12


def test_every_prompt_is_drawn_with_the_same_chance():
    draws = Counter(
        prompt.text
        for seed in range(3000)
        for prompt in Sample.of([PromptText(t) for t in "abcd"], seed, most=1).prompts
    )
    spread = (3000 * 0.25 * 0.75) ** 0.5
    assert all(abs(draws[text] - 750) < 6 * spread for text in "abcd")


def test_a_seed_means_one_sample_and_every_beginning_holds_all_kinds():
    prompts = [PromptText(f"{kind}{i}", kind) for kind in "xyz" for i in range(50)]
    one, again, other = (Sample.of(prompts, seed, most=30) for seed in (1, 1, 2))
    assert one == again and one.digest == again.digest and one.digest != other.digest
    assert {prompt.kind for prompt in islice(one.prompts, 3)} == {*"xyz"}


def test_a_file_of_many_kinds_has_few():
    sample = Sample.of([PromptText("t", str(i)) for i in range(2000)], most=2000)
    assert len({prompt.kind for prompt in sample.prompts}) <= prompt_sample.MOST_KINDS


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("p.jsonl", b'{"prompt": "a"}\n{"prompt": \n', "Line 2 of p.jsonl is not valid JSON"),
        ("p.jsonl", b"[" * 100_000, "not valid JSON"),
        ("p.jsonl", b'["a"]\n', 'no field "prompt" or "text"'),
        ("p.jsonl", b'{"prompt": " "}\n', "no prompt with a text"),
        ("p.csv", b"question\na\n", 'no column "prompt" or "text"'),
        ("p.csv", b"", 'no column "prompt" or "text"'),
        ("p.txt", "für".encode("latin-1"), "not UTF-8"),
        ("p.txt", b"", "no prompt with a text"),
        ("p.txt", b"x" * 1_000_002, "longer than 1,000,000 characters"),
        ("p.csv", b'prompt\n"' + b"x\n" * 600_000, "CSV"),
        ("folder", None, "cannot be read"),
        ("missing.txt", None, "cannot be read"),
    ],
)
def test_what_is_no_list_of_prompts_is_refused_in_a_sentence(name, content, why, tmp_path):
    (tmp_path / "folder").mkdir()
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=why) as refused:
        Sample.of_file(file)
    assert "\n" not in str(refused.value)
