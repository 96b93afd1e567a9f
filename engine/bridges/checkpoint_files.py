"""A checkpoint as its files describe it: configuration, names and shapes of tensors, tokens. No tensor is read.

The checkpoint is a folder, or a model on the Hub, of which only descriptions are fetched (the headers of the weights by
byte ranges).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from engine.errors import UserError
from engine.parts.drafts import tokens_of
from engine.parts.files import CONFIG, PICKLED, json_object
from engine.parts.hub import PATIENCE, is_hub_name, name_of, within
from engine.parts.inspection import MOST_FILES
from engine.parts.stored_file import entries, weights_in

Shape = tuple[int, ...]
MOST_HEADERS, MOST_FETCHED = 512, 64
"""The most weight files in a folder, and in a repository on the Hub."""
ADAPTER, TOKENIZER = "adapter_config.json", "tokenizer.json"
NO_ANSWER = "The Hub did not answer, so {} cannot be looked at; try again later, or name a folder."


@dataclass(frozen=True)
class Described:
    """The description of a checkpoint. name: for people. shapes: tensor name -> shape, from the safetensors files.
    pickled: files that may hold a program. adapter: whether the checkpoint is an adapter. tokens: token -> id; {}
    without a tokenizer."""

    name: str
    config: Mapping[str, object]
    shapes: Mapping[str, Shape]
    pickled: tuple[str, ...] = ()
    adapter: bool = False
    tokens: Mapping[str, int] | None = None

    @property
    def inner(self) -> Mapping[str, object]:
        """The section of the configuration that describes the layers, or the whole configuration."""
        for key in ("transformer_layer_config", "text_config"):
            if isinstance(self.config.get(key), dict):
                return self.config[key]  # type: ignore[return-value]
        return self.config

    def number(self, *names: str) -> int | None:
        """The value of the first of these entries whose value is a whole number. Each entry is looked up at the top
        level, and in the section about the layers. None if no entry is found."""
        for name in names:
            for where in (self.config, self.inner):
                value = where.get(name)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return None

    @property
    def tokenizer_digest(self) -> str:
        """Twelve hexadecimal digits of all tokens and their ids; "" without a tokenizer."""
        if not self.tokens:
            return ""
        pairs = json.dumps(sorted(self.tokens.items(), key=str)).encode()
        return hashlib.sha256(pairs).hexdigest()[:12]


def described(wish: str) -> Described:
    """The description of the checkpoint in this folder, or with this name on the Hub. Raises UserError, one
    sentence."""
    if not wish.strip() or "\0" in wish or len(wish) > 4096:
        raise UserError("Name a checkpoint: a folder, or OWNER/NAME on the Hub.")
    folder = Path(wish)
    try:
        if folder.is_dir():
            return _of_folder(folder)
        if folder.exists():
            raise UserError(f"{folder.name} is a file; name the folder of the checkpoint.")
    except OSError as error:
        raise UserError(f"{folder.name[:80]} cannot be read: {error.strerror}.") from None
    if is_hub_name(wish):
        return _of_hub(wish)
    raise UserError(
        f"There is no folder {folder.name[:80]!r}, and no model on the Hub is named so."
    )


def _of_folder(folder: Path) -> Described:
    name = name_of(folder.resolve())
    files = sorted(entry for entry in folder.iterdir() if entry.is_file())
    if len(files) > MOST_FILES:
        raise UserError(f"The folder of {name} holds too many files.")
    names = {entry.name for entry in files}
    adapter = ADAPTER in names
    if CONFIG not in names and not adapter:
        raise UserError(f"{name} has no {CONFIG}, so there is nothing to tell what it is.")
    try:
        config = json_object(folder / CONFIG) if CONFIG in names else {}
    except ValueError as error:
        raise UserError(f"The checkpoint {name} cannot be looked at: {error}.") from None
    weights = weights_in(folder)
    if len(weights) > MOST_HEADERS:
        raise UserError(f"The folder of {name} holds too many files of weights.")
    shapes: dict[str, Shape] = {}
    for file in weights:
        try:
            shapes |= {key: shape for key, (shape, _) in entries(file).items()}
        except (OSError, SafetensorError):
            raise UserError(f"{file.name} of {name} is damaged or cut off.") from None
    pickled = tuple(entry.name for entry in files if entry.suffix in PICKLED)
    return Described(name, config, shapes, pickled, adapter, tokens_of(str(folder)))


def _of_hub(name: str) -> Described:
    """Fetch config.json, tokenizer.json and the headers of the weights, anonymously like every request for a
    visitor."""
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        NotASafetensorsRepoError,
        SafetensorsParsingError,
    )

    hub = HfApi(token=False)
    try:
        listing = within(PATIENCE, lambda: hub.model_info(name, timeout=PATIENCE))
        names = {sibling.rfilename for sibling in listing.siblings or []}
        if CONFIG not in names and ADAPTER not in names:
            raise UserError(f"{name} has no {CONFIG}, so there is nothing to tell what it is.")
        here = {
            file_name: Path(
                hf_hub_download(
                    name, file_name, revision=listing.sha, token=False, etag_timeout=PATIENCE
                )
            )
            for file_name in (CONFIG, TOKENIZER)
            if file_name in names
        }
        config = json_object(here[CONFIG]) if CONFIG in here else {}
        shapes: dict[str, Shape] = {}
        weights = sorted(file_name for file_name in names if file_name.endswith(".safetensors"))
        if len(weights) > MOST_FETCHED:
            raise UserError(
                f"{name} has more than {MOST_FETCHED} files of weights; download it, and name its folder."
            )
        for file in weights:
            header = hub.parse_safetensors_file_metadata(
                name, file, revision=listing.sha, token=False
            )
            shapes |= {key: tuple(tensor.shape) for key, tensor in header.tensors.items()}
    except UserError:
        raise
    except (NotASafetensorsRepoError, SafetensorsParsingError):
        raise UserError(f"A file of weights of {name} is damaged.") from None
    except HfHubHTTPError as error:
        if error.response is None:
            raise UserError(NO_ANSWER.format(name)) from None
        raise UserError(f"The Hub has no public model {name}.") from None
    except ValueError as error:
        raise UserError(f"The checkpoint {name} cannot be looked at: {str(error)[:120]}.") from None
    except Exception as error:  # a lost connection raises many kinds
        raise UserError(NO_ANSWER.format(name)) from error
    pickled = tuple(sorted(file_name for file_name in names if Path(file_name).suffix in PICKLED))
    tokens = tokens_of(str(here[TOKENIZER].parent)) if TOKENIZER in here else {}
    return Described(name, config, shapes, pickled, ADAPTER in names, tokens)
