"""A prompt, or a conversation, as the tokens that the target reads."""

from collections.abc import Sequence

from engine.chat.turns import ChatPrompt, Message, chat_prompt, split
from engine.errors import UserError
from engine.model.language_model import LanguageModel


def read_prompt(
    target: LanguageModel, prompt: str, messages: Sequence[Message] | None = None
) -> ChatPrompt:
    """The text and its tokens. Raises UserError if the text is empty, leaves no room in the target's
    context, or holds tokens that the target has no embedding for."""
    if messages is not None:
        found = chat_prompt(target, messages)
    else:
        found = ChatPrompt(prompt, _tokens(target, prompt), frozenset())
    tokens, room = found.tokens, target.max_context
    if not tokens:
        raise UserError("The prompt is empty.")
    if max(tokens) >= target.embeddings:
        raise UserError(
            f"The prompt holds the token {max(tokens)}, but {target.name} knows only "
            f"{target.embeddings} tokens: its tokenizer does not belong to it."
        )
    if len(tokens) >= room:
        raise UserError(
            f"The prompt has {len(tokens)} tokens; the context of {target.name} "
            f"holds {room}, of which at least one must stay free."
        )
    return found


def _tokens(target: LanguageModel, prompt: str) -> list[int]:
    return split(target, prompt, "The prompt")
