"""The chat template: each turn is its role's token, its text and the end token."""

from __future__ import annotations

ROLES = ["system", "user", "assistant"]
END = "<|end|>"
CHAT_TOKENS = [*(f"<|{role}|>" for role in ROLES), END]
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def render(messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
    """The messages as the template renders them."""
    turns = [f"<|{m['role']}|>{m['content']}{END}" for m in messages]
    return "".join(turns) + ("<|assistant|>" if add_generation_prompt else "")
