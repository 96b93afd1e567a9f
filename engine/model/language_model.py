"""Any causal language model of Hugging Face's transformers.

Target and draft models are alike here. A model has sessions; a session runs the model over rows, returns their logits,
and commits some of the rows.
"""

import inspect
from collections.abc import Iterable, Sequence

from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from engine.core.load import UNKNOWN, Expected
from engine.errors import UserError
from engine.model import attention
from engine.model.cache import KVCache
from engine.model.generation import ends_of
from engine.model.layers import final_norm
from engine.model.picture import picture_of
from engine.model.positions import hand_over
from engine.model.session import Session
from engine.model.states import mixers_of

DEFAULT_CONTEXT = 2048  # tokens, for a configuration without a longest text


class LanguageModel:
    """A language model: weights and tokenizer. Sessions share the model, and the model holds no data of any session.

    This class runs passes through the transformers module. Packages with faster passes subclass it, and
    ``engine.parts.opening`` chooses the class.
    """

    attention = attention.NAME
    """The name of the attention function that the module uses."""

    asynchronous = False
    """Whether passes are only queued on a device, so that the host must wait before it can read a result."""

    known: int | None = None
    """How many log-probabilities the model returns for a row; None means all."""

    reads_stored = False
    """Whether passes read weights of 4 or 8 bits as they are stored, not as numbers of the dtype."""

    holds_branches = True
    """Whether a session may hold several texts, as branches."""

    pads_texts = False
    """Whether a pass over several texts has as many rows and columns for each as the largest of them needs."""

    leading: Sequence[int] = ()
    """Tokens that stand before those of every prompt."""

    torch_threads: int | None = None
    """The number of torch's threads while steps are run; None leaves the number as it is."""

    def __init__(self, model: PreTrainedModel, tokenizer, name: str) -> None:
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name = name
        config = model.config.get_text_config(decoder=True)
        refuse_unreadable(model, name)
        hand_over(model)
        model.set_attn_implementation(self.attention)
        self.device, self.dtype = model.device, model.dtype  # transformers looks them up each time
        self.parameters = sum(p.numel() for p in model.parameters())
        self.layers = config.num_hidden_layers
        self.cache_layers = max(self.layers, len(DynamicCache(config=model.config).layers))
        self.hidden_size = config.hidden_size
        head = model.get_output_embeddings()
        self.vocab_size = getattr(head, "out_features", None) or head.weight.shape[0]
        self.embeddings = model.get_input_embeddings().weight.shape[0]
        self.picture = picture_of(model.config, self.vocab_size)
        self.max_context = getattr(config, "max_position_embeddings", None) or DEFAULT_CONTEXT
        self.end_tokens, self.ends_named_by = ends_of(model, tokenizer)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        """A new session, which has read nothing. capacity: columns to begin with. features: indices into hidden_states,
        whose states every pass of the session returns."""
        return Session(self, KVCache.empty(self.cache_layers, capacity), tuple(features))

    def view_columns(self, capacity: int) -> KVCache | None:
        """Empty columns for the compiled passes of a ``CacheView``; None if its passes go through the module."""
        return None

    def expect(self, features: Sequence[int], nodes: int, coming: Expected = UNKNOWN) -> None:
        """Prepare for a text before it is timed: for the pass over its prompt, and for passes over trees of up to
        ``nodes`` nodes. Subclasses compile passes here."""

    def expect_chains(self, features: Sequence[int] = (), coming: Expected = UNKNOWN) -> None:
        """Prepare for a text before it is timed: for a session that returns these features and drafts chains of
        likeliest tokens (``Session.read_ahead``)."""

    def prepare_stretches(self, cuts: Iterable[int], nodes: int) -> None:
        """Prepare faster passes for a drafter that runs rows through some of the layers at a time, and for trees of
        about ``nodes`` nodes that continue after such rows. cuts: the layers at which such a pass may begin or end."""

    def prepare_exits(self, exits: Iterable[int]) -> None:
        """Prepare faster passes for a drafter that runs rows only up to one of the layers in ``exits``."""

    def reopened(self, module: PreTrainedModel) -> "LanguageModel":
        """A language model for another module of the same architecture, opened in the same way as this model."""
        model = self._again(module)
        model.max_context = self.max_context
        return model

    def _again(self, module: PreTrainedModel) -> "LanguageModel":
        return type(self)(module, self.tokenizer, self.name)

    def uncompiled(self, module: PreTrainedModel) -> "LanguageModel":
        """A language model for another module of the same architecture that is never compiled, because the module's
        weights may change."""
        model = LanguageModel(module, self.tokenizer, self.name)
        model.max_context = self.max_context
        return model

    def kv_bytes(self, columns: int) -> int:
        """The size in bytes of the keys and values of a text of ``columns`` tokens."""
        config = self.model.config.get_text_config()
        heads = config.num_attention_heads
        width = getattr(config, "head_dim", None) or self.hidden_size // heads
        shared = getattr(config, "num_key_value_heads", None) or heads
        return 2 * self.layers * shared * width * columns * self.dtype.itemsize

    def readable(self, tokens: Sequence[int]) -> Sequence[int]:
        """The tokens, with token 0 in place of every token for which the model has no embedding. Such tokens are
        padding ids that another model with the same tokenizer has and may write."""
        count = self.embeddings
        if max(tokens, default=0) < count:
            return tokens
        return [token if token < count else 0 for token in tokens]

    def embed(self, tokens: Tensor) -> Tensor:
        """The embeddings of tokens: [T] -> [T, H]."""
        return self.model.get_input_embeddings()(tokens)

    def norm(self, hidden: Tensor) -> Tensor:
        """The final norm of hidden states: [T, H] after any layer -> [T, H]."""
        return final_norm(self.model)(hidden)

    def head(self, hidden: Tensor) -> Tensor:
        """The logits [T, V] of normed hidden states [T, H]."""
        return self.model.get_output_embeddings()(hidden)


def takes_attention(model: PreTrainedModel) -> bool:
    """Whether the module's attention function can be set. If not, the module has attention code of its own."""
    return type(model)._can_set_attn_implementation()


def keeps_state(model: PreTrainedModel) -> bool:
    """Whether the model keeps a recurrent state of a text besides keys and values."""
    config = model.config.get_text_config(decoder=True)
    kinds = set(getattr(config, "layer_types", None) or ())
    recurrent = any("attention" not in kind or "linear" in kind for kind in kinds)
    return recurrent or model._is_stateful


def refuse_unreadable(model: PreTrainedModel, name: str) -> None:
    """Raise UserError if the module cannot continue a text from its keys and values."""
    if model.config.get_text_config(decoder=True).num_hidden_layers < 1:
        raise UserError(f"{name} has no layers.")
    if keeps_state(model) and not mixers_of(model):
        raise UserError(
            f"{name} keeps a recurrent state of a kind that the engine does not know beside its attention."
        )
    if "past_key_values" not in inspect.signature(model.forward).parameters:
        raise UserError(
            f"{name} keeps no keys and values of what it has read, so the engine cannot go on from there."
        )
    if model.get_output_embeddings() is None:
        raise UserError(f"{name} has no single head that gives logits over a vocabulary.")
