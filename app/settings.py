"""What the page allows, and what its host may set in the environment."""

import os
from dataclasses import dataclass

from engine.parts.loading import ModelPaths
from presets import family


def _whole(name: str, default: int) -> int:
    try:
        return max(1, int(os.environ.get(name, default)))
    except ValueError:
        return default


@dataclass(frozen=True)
class Limits:
    """Bounds for one visitor and for all of them together."""

    prompt_characters: int = 4000
    schema_characters: int = 4000
    new_tokens: int = _whole("DRAFTSCOPE_MAX_NEW_TOKENS", 256)
    """Most tokens that one run may write."""
    running: int = _whole("DRAFTSCOPE_RUNNING", 4)
    """Runs that advance at once; they take turns on the engine."""
    waiting: int = _whole("DRAFTSCOPE_WAITING", 32)
    """Events that may queue before a visitor is asked to come back."""
    kept: int = _whole("DRAFTSCOPE_KEPT_RUNS", 48)
    """Runs kept for visitors: running, paused, or just finished."""
    memories: int = _whole("DRAFTSCOPE_MEMORIES", 64)
    """Visitors for whom drafters may remember something, at most 8 MB each."""
    kept_seconds: float = 600.0
    """A paused run is let go after this long."""
    trace_bytes: int = 8_000_000
    """Largest trace that a visitor may open."""
    plain_milliseconds: float = 4000.0
    """Engine time after which plain decoding, measured beside a run, is cut short."""
    lanes: int = 5
    """Most lanes of one comparison."""


LIMITS = Limits()
MCP = os.environ.get("DRAFTSCOPE_MCP") == "1"
"""Whether the endpoints for programs are an MCP server's tools, too."""


def model_paths() -> ModelPaths:
    """The models of this page: the host's own directories, else the embedded family.

    Only whoever starts the page names directories; a visitor never can.
    """
    target = os.environ.get("DRAFTSCOPE_TARGET")
    if target:
        roles = {"draft": "DRAFTSCOPE_DRAFT", "diffusion": "DRAFTSCOPE_DIFFUSION"}
        given = {role: os.environ.get(name) or None for role, name in roles.items()}
        return ModelPaths(target).with_parts(given)
    return family()


def address() -> tuple[str, int]:
    """Host and port to serve on: this machine only, unless told otherwise or on a Space."""
    hosted = "SPACE_ID" in os.environ
    host = os.environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if hosted else "127.0.0.1")
    return host, _whole("GRADIO_SERVER_PORT", 7860)
