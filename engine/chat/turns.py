"""Conversations: turns become the text that a chat model was trained to answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.chat.chat_template import renderer
from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.printable import one_line

ROLES = ("system", "user", "assistant")
MOST_TURNS = 200
_MARK = "draftscope"  # a word that no template writes by itself

Message = Mapping[str, str]
"""One turn: {"role": system | user | assistant, "content": text}."""


@dataclass(frozen=True)
class ChatPrompt:
    """A conversation as a prompt. text: the turns as the template renders them. tokens: the tokens of this text. ends:
    tokens that end an answer in this template."""

    text: str
    tokens: list[int]
    ends: frozenset[int]


def checked(messages: object) -> list[dict[str, str]]:
    """The turns as dicts. Raises UserError unless they are a conversation that awaits an answer."""
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise UserError("A conversation is a list of turns, the last one the user's.")
    if len(messages) > MOST_TURNS:
        raise UserError(f"A conversation has at most {MOST_TURNS} turns.")
    for turn in messages:
        fits = isinstance(turn, Mapping) and set(turn) == {"role", "content"}
        if not fits or not all(isinstance(part, str) for part in turn.values()):
            raise UserError('A turn is {"role": ..., "content": ...}, both of them text.')
        if turn["role"] not in ROLES:
            raise UserError(f"A turn's role is {', '.join(ROLES[:-1])} or {ROLES[-1]}.")
    if messages[-1]["role"] != "user" or not messages[-1]["content"].strip():
        raise UserError("The last turn of a conversation is the user's, and not empty.")
    return [dict(turn) for turn in messages]


def has_template(model: LanguageModel) -> bool:
    """Whether the model's tokenizer has a chat template."""
    return bool(getattr(model.tokenizer, "chat_template", None))


def chat_prompt(model: LanguageModel, messages: Sequence[Message]) -> ChatPrompt:
    """The prompt for a conversation. Raises UserError if the model has no template, or if its template refuses these
    turns."""
    turns = checked(messages)
    if not has_template(model):
        raise UserError(f"{model.name} has no chat template; give it a prompt.")
    text = _rendered(model, turns, True)
    tokens = _tokens(model, text)
    return ChatPrompt(text, tokens, _ends(model))


def _rendered(model: LanguageModel, turns: Sequence[Message], asks: bool) -> str:
    tokenizer = model.tokenizer
    try:
        template = tokenizer.get_chat_template()
        text = renderer.render(template, turns, tokenizer.special_tokens_map, asks)
    except (UserError, ValueError) as error:  # ValueError: several templates, none the default
        raise UserError(
            f"The chat template of {model.name} refuses this: {one_line(str(error), 160)}"
        ) from error
    if not text:
        raise UserError(f"The chat template of {model.name} makes no text of this.")
    return text


def split(model: LanguageModel, text: str, named: str, **how) -> list[int]:
    """The tokens of a text. named: a name for the text that begins an error message. how: arguments of the tokenizer's
    call. Raises UserError for a text that is not valid Unicode, and if the tokenizer fails."""
    try:
        return list(model.tokenizer(text, **how)["input_ids"])
    except (UnicodeError, TypeError):
        raise UserError(f"{named} is no valid Unicode text.") from None
    except UserError:
        raise
    except BaseException as error:  # the tokenizers library's panics are BaseExceptions
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        why = one_line(str(error), 160)
        raise UserError(f"The tokenizer of {model.name} fails on this text: {why}.") from error


def _tokens(model: LanguageModel, text: str) -> list[int]:
    return split(model, text, "The conversation", add_special_tokens=False)


def _ends(model: LanguageModel) -> frozenset[int]:
    """The special token that the template writes after an answer, as a set; empty if there is none."""
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _MARK}]
    try:
        text = _rendered(model, turns, False)
    except UserError:
        return frozenset()
    behind = _tokens(model, text.rpartition(_MARK)[2].lstrip())[:1]
    special = set(model.tokenizer.all_special_ids) | set(model.tokenizer.added_tokens_decoder)
    return frozenset(behind) & special


def read_prompt(
    target: LanguageModel, prompt: str, messages: Sequence[Message] | None = None
) -> ChatPrompt:
    """The prompt, or the conversation if ``messages`` is not None, with its tokens. Raises UserError if the text is
    empty, leaves no room in the target's context, or holds tokens for which the target has no embedding."""
    if messages is not None:
        read = chat_prompt(target, messages)
    else:
        tokens = [*target.leading, *split(target, prompt, "The prompt")]
        read = ChatPrompt(prompt, tokens, frozenset())
    tokens, room = read.tokens, target.max_context
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
    return read
