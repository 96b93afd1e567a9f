"""Models named by their name on the Hugging Face Hub: inspected, downloaded, and opened from the folder.

Requests for a visitor are anonymous: the host's own token is not sent.
"""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from engine.errors import UserError
from engine.progress import Tell, silent

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
WANTED = ("*.safetensors", "*.json", "tokenizer.model", "*.jinja", "merges.txt", "vocab.txt")
PATIENCE = 5.0
"""The seconds within which the Hub must give its first answer. Socket timeouts do not cover this wait: neither the
look-up of a host name, nor several addresses that are tried one after the other."""
CACHED = "models--"  # the prefix of folder names in the Hub's cache
T = TypeVar("T")
REFUSED = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.msgpack", "*.h5", "*.onnx", "*/*")


def is_hub_name(text: str) -> bool:
    """Whether the text has the form OWNER/NAME."""
    return bool(NAME.fullmatch(text)) and ".." not in text


def name_of(path: str | Path) -> str:
    """The name by which people know a model: OWNER/NAME for a folder in the Hub's cache, otherwise the folder's
    name."""
    folder = Path(path)
    places = folder.parts[-3:]
    if len(places) == 3 and places[0].startswith(CACHED) and places[1] == "snapshots":
        return places[0].removeprefix(CACHED).replace("--", "/")
    return folder.name


def folder_of(name: str) -> Path:
    """The folder of a model that the user of the command line names by its Hub name; it is downloaded if it is not
    there yet. The request sends the user's own token. Raises UserError."""
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(name, allow_patterns=list(WANTED), ignore_patterns=list(REFUSED))
    except Exception as error:  # many kinds: no such model, no valid name, no connection
        raise UserError(f"There is no causal language model to open at {name}.") from error
    return Path(folder)


def download(name: str, most_bytes: int, tell: Tell = silent) -> Path:
    """The folder of this model; it is downloaded if it is not there yet. Raises UserError if the Hub cannot be reached,
    has no such model, or has one that is too large or without safetensors."""
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    from huggingface_hub.utils import filter_repo_objects

    if not is_hub_name(name):
        raise UserError("A model on the Hub is named OWNER/NAME.")
    hub = HfApi(token=False)
    try:
        listing = within(
            PATIENCE, lambda: hub.model_info(name, files_metadata=True, timeout=PATIENCE)
        )
        files = list(
            filter_repo_objects(
                listing.siblings or [],
                allow_patterns=list(WANTED),
                ignore_patterns=list(REFUSED),
                key=lambda file: file.rfilename,
            )
        )
        _refuse(
            name,
            [file.rfilename for file in files],
            sum(file.size or 0 for file in files),
            most_bytes,
        )
        folder, done, whole = None, 0, sum(file.size or 0 for file in files) or 1
        for file in files:
            tell(f"Downloading {name}", done / whole)
            path = hf_hub_download(
                name, file.rfilename, revision=listing.sha, token=False, etag_timeout=PATIENCE
            )
            folder, done = Path(path).parent, done + (file.size or 0)
    except (HfHubHTTPError, HFValidationError) as error:
        raise UserError(f"The Hub has no public model {name}.") from error
    except (OSError, ValueError, json.JSONDecodeError) as error:
        raise UserError(
            f"The Hub did not answer, so {name} cannot be looked at; try again later, or name a folder."
        ) from error
    tell(f"Downloading {name}", 1.0)
    return folder


def within(seconds: float, ask: Callable[[], T]) -> T:
    """The result of ``ask``, whose exceptions are raised again. Raises TimeoutError if ``ask`` takes longer than
    ``seconds``. ``ask`` runs in a thread of its own; after a timeout that thread is abandoned, because nothing can end
    a look-up that hangs."""
    answers: queue.SimpleQueue[tuple[bool, object]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((True, ask()))
        except Exception as error:  # noqa: BLE001  (raised again below)
            answers.put((False, error))

    threading.Thread(target=work, name="hub", daemon=True).start()
    try:
        good, result = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if not good:
        raise result  # type: ignore[misc]
    return result  # type: ignore[return-value]


def _refuse(name: str, files: Sequence[str], size: int, most: int) -> None:
    if "config.json" not in files or not any(file.endswith(".safetensors") for file in files):
        raise UserError(
            f"{name} has no configuration with safetensors; only these are opened here."
        )
    if size > most:
        raise UserError(
            f"{name} is {size / 1e9:,.1f} GB; {most / 1e9:,.1f} GB are free for it here."
        )
