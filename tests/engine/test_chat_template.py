"""Chat templates are programs from strangers: kept within bounds, and rendered as transformers renders them."""

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from engine.chat.chat_template import Bounds, Renderer
from engine.errors import UserError

TURNS = [{"role": "user", "content": "Hello 😀 Zoë"}]
LOOPS = "{% for message in messages %}<{{ message.role }}>{{ message.content | trim }}{{ eos_token }}{% endfor %}"
BOUNDS = Bounds(seconds=0.3, megabytes=512, characters=10_000)
THOUSANDS = "range(100000)"
HOSTILE = {
    "nested loops": (
        f"{{% for a in {THOUSANDS} %}}{{% for b in {THOUSANDS} %}}{{% endfor %}}{{% endfor %}}",
        "computes for more than",
    ),
    "one long operation": ("{% set n = messages | length + 9 %}{{ n ** (n ** 8) }}", "computes"),
    "a constant that takes long": ("{{ 10 ** (10 ** 8) }}", "computes for more than"),
    "too much memory": ("{{ messages[0].content * (10 ** 10) }}", "takes too much memory"),
    "a text that doubles": (
        "{% set n = namespace(x='a') %}{% for _ in range(64) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "memory|computes",
    ),
    "a huge text": (
        f"{{% for a in {THOUSANDS} %}}a{{% endfor %}}",
        "longer than 10,000 characters",
    ),
    "no end": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
    "a long refusal": ("{{ raise_exception('a' * 10 ** 6) }}", "^a{500}$"),
    "no template": (3, "."),
}


@pytest.fixture(scope="module")
def renderer():
    made = Renderer(BOUNDS)
    yield made
    made.close()


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_template_without_bounds_is_refused_and_the_next_is_rendered(renderer, kind):
    template, why = HOSTILE[kind]
    with pytest.raises(UserError, match=why):
        renderer.render(template, TURNS, {}, True)
    assert renderer.render("{{ messages[0].content }}", TURNS, {}, True) == "Hello 😀 Zoë"


@pytest.mark.parametrize("asks", [True, False])
def test_what_it_renders_is_what_transformers_renders(renderer, asks):
    template = LOOPS + "{% if add_generation_prompt %}<assistant>{% endif %}"
    tokens = {"eos_token": "</s>", "extra_special_tokens": ["<a>"]}
    (wanted,), _ = render_jinja_template(
        [TURNS], chat_template=template, add_generation_prompt=asks, **tokens
    )
    assert renderer.render(template, TURNS, tokens, asks) == wanted
    assert wanted.endswith("<assistant>" if asks else "</s>")
