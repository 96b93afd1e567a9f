"""The limits of the page, and the settings that its host may give in the environment."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from engine.errors import UserError, unknown
from engine.finding import OUTSIDE, outside_folders
from engine.parts.loading import ModelPaths
from engine.parts.size_limits import Allowed
from engine.printable import one_line
from engine.serving.engine_address import is_served, read
from engine.text_file import text_of
from presets import family

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SETTINGS = "DRAFTSCOPE_SETTINGS"
"""The environment variable that names the settings file: TOML, each setting by its name in ``Limits``."""
WATCH = "DRAFTSCOPE_WATCH"
"""The environment variable that names a folder of records."""
FOLDERS = {"--methods": OUTSIDE, "--watch": WATCH}


@dataclass(frozen=True)
class Limits:
    """Bounds for one visitor and for all visitors together.

    Each can be set in the settings file by its name, or in the environment as DRAFTSCOPE_ and its name in capitals; the
    environment takes precedence. ``limits`` reads them, and ``told`` lists them for the page.
    """

    prompt_characters: int = 4000
    conversation_characters: int = 16000
    """Most characters in all turns of a conversation together."""
    schema_characters: int = 4000
    max_new_tokens: int = 256
    """Most tokens that one run may write."""
    max_nodes: int = 64
    """Most nodes that a run may draft in a step."""
    lanes: int = 5
    """Most lanes of one comparison."""
    run_seconds: int = 120
    """Most seconds that one run may compute."""
    running: int = 16
    """Most runs that take turns, a step each."""
    waiting: int = 24
    """Most runs that may stand in line behind the runs that take turns."""
    share: int = 24
    """Steps after which a run lets the runs that stand in line go first."""
    kept_runs: int = 96
    """Most runs kept for visitors: running, paused, or just finished."""
    client_running: int = 3
    """Most runs of one address that take turns. This does not slow an address down while it is alone: all runs together
    take one step at a time."""
    client_waiting: int = 16
    """Most runs of one address that may stand in line."""
    client_kept: int = 32
    """Most runs kept for one address."""
    client_requests: int = 256
    """Most open requests of one address; a page holds two or three."""
    client_calls: int = 8
    """Most calls of one address that are worked on at once; further calls wait."""
    client_rate: int = 20
    """Requests of one address that are worked on in a second, after those it has saved up; further requests wait."""
    unread_seconds: int = 10
    """Seconds after which a request whose answer nobody reads is dropped."""
    unread_megabytes: int = 256
    """Most memory for all answers that wait to be read; one address may take a quarter."""
    body_megabytes: int = 10
    """Largest request; one that brings a file of ``trace_megabytes`` always fits."""
    body_seconds: int = 30
    """Seconds within which a request must be complete."""
    bodies_megabytes: int = 128
    """Most memory for all requests that are being received; one address may take a quarter."""
    kept_seconds: int = 600
    """Seconds after which a paused run is dropped."""
    memories: int = 64
    """Most visitors for whom drafters may remember something."""
    memory_megabytes: int = 8
    """Most memory of drafters for one visitor."""
    kv_megabytes: int = 256
    """Most keys and values that one run may hold, in all of its lanes and models together."""
    trace_megabytes: int = 8
    """Largest trace that a run may write, and that a visitor may open."""
    tune_prompts: int = 24
    """Most prompts that one tuning measures on; from more prompts a sample is drawn."""
    tune_kilobytes: int = 256
    """Largest text or file of prompts."""
    tune_tokens: int = 64
    """Most tokens that a tuning writes after each prompt."""
    tune_seconds: int = 240
    """Most seconds that one tuning may compute."""
    answers_megabytes: int = 16
    """Most memory for the runs of programs' answers that wait to be looked at (``kept_seconds``); one address may take
    a quarter."""
    resident_models: int = 4
    """Most models of visitors' own that are held in memory at once."""
    plain_milliseconds: int = 4000
    """Engine time after which a run that measures the speed in the background is cut short."""

    @property
    def new_tokens(self) -> int:
        return self.max_new_tokens

    @property
    def kept(self) -> int:
        return self.kept_runs

    @property
    def trace_bytes(self) -> int:
        return self.trace_megabytes * 1_000_000

    @property
    def tune_bytes(self) -> int:
        return self.tune_kilobytes * 1000

    @property
    def body_bytes(self) -> int:
        """Most bytes of one request. A trace grows by about an eighth when it is sent as JSON."""
        return max(self.body_megabytes * 1_000_000, self.trace_bytes * 5 // 4)

    @property
    def unread_bytes(self) -> int:
        """Most unread bytes. A run sends its whole trace twice: in parts as it goes on, and again at its end."""
        return max(self.unread_megabytes * 1_000_000, 8 * self.trace_bytes)

    @property
    def visitor_megabytes(self) -> int:
        """Most megabytes that one visitor may take: one memory of drafters, and five runs with their traces, namely on
        Watch, on Compare, on Tune, in a lesson, and to measure the speed."""
        return 5 * (self.kv_megabytes + self.trace_megabytes) + self.memory_megabytes

    def told(self) -> list[tuple[str, str]]:
        """Return the limits as the page lists them: (name, amount)."""
        return [
            ("Prompt", f"{self.prompt_characters:,} characters"),
            ("Conversation", f"{self.conversation_characters:,} characters in all"),
            ("JSON schema", f"{self.schema_characters:,} characters"),
            ("New tokens", f"{self.max_new_tokens:,} a run"),
            ("Drafted", f"{self.max_nodes} nodes a step"),
            ("Lanes", f"{self.lanes} a race"),
            ("Computing", f"{self.run_seconds:,} seconds a run"),
            (
                "A tuning",
                f"{self.tune_prompts} prompts, {self.tune_tokens} tokens after each, {self.tune_seconds:,} seconds",
            ),
            ("Runs at once", f"{self.running} take turns, {self.waiting} more wait in line"),
            (
                "Of one address",
                f"{self.client_running} take turns, {self.client_waiting} wait, {self.client_kept} are kept",
            ),
            ("A paused run", f"is kept for {self.kept_seconds // 60 or 1} minutes"),
            ("Memory", f"{self.visitor_megabytes:,} MB a visitor, at the very most"),
            ("A file to open", f"{self.trace_megabytes} MB"),
        ]


def limits(environment: Mapping[str, str] = os.environ) -> Limits:
    """Return the limits from the settings file, if there is one, and the environment.

    Raises UserError, one sentence, for a file that cannot be read, a name that is no setting, and a value that is not a
    whole number above 0. So the host hears of a mistake before visitors do.
    """
    values = _settings_file(environment.get(SETTINGS))
    names = {setting.name for setting in fields(Limits)}
    strange = sorted(values.keys() - names)
    if strange:
        raise unknown("setting", strange[0], sorted(names))
    for name in names:
        override = environment.get(f"DRAFTSCOPE_{name.upper()}")
        if override is not None:
            values[name] = override
    return Limits(**{name: _positive(name, value) for name, value in values.items()})


def _settings_file(path: str | None) -> dict[str, object]:
    if not path:
        return {}
    try:
        return tomllib.loads(text_of(Path(path), f"The settings file {path}"))
    except tomllib.TOMLDecodeError:
        raise UserError(f"The settings file {path} is not TOML.") from None


def _positive(name: str, given: object) -> int:
    try:
        number = int(given) if isinstance(given, int | str) else 0
    except ValueError:
        number = 0
    if not 0 < number < 2**31:
        raise UserError(f"The setting {name} must be a whole number above 0, not {given!r}.")
    return number


LIMITS = limits()
MCP = os.environ.get("DRAFTSCOPE_MCP") == "1"
"""Whether the endpoints for programs are also the tools of an MCP server."""
OPENAI = os.environ.get("DRAFTSCOPE_OPENAI", "1") != "0"
"""Whether the server has the endpoints for OpenAI's clients."""

AHEAD = ("all", "examples", "none")
"""Which drafters the server tries before its first visitor comes; see ``tried_ahead``."""


def tried_ahead(environment: Mapping[str, str] = os.environ) -> str:
    """Return the value of DRAFTSCOPE_AHEAD, by default "all". It chooses the drafters that the server tries before its
    first visitor does: all that have their parts, those of the examples and races, or none. Raises UserError for
    another value."""
    ahead = environment.get("DRAFTSCOPE_AHEAD", "").strip().lower() or AHEAD[0]
    if ahead not in AHEAD:
        raise UserError(f"DRAFTSCOPE_AHEAD must be one of {', '.join(AHEAD)}, not {ahead!r}.")
    return ahead


def model_paths(models: str = "") -> ModelPaths:
    """Return the models of this page: those in the host's own directories, or else the embedded family.

    models: the name of another embedded family to use instead. Raises UserError for an unknown family.

    DRAFTSCOPE_DRAFT may name several drafts, separated by commas: the first is the default, and visitors may choose the
    others. Only the host who starts the page can name directories; a visitor never can.
    """
    if models:
        return family(models)
    target = os.environ.get("DRAFTSCOPE_TARGET")
    if is_served(target or ""):
        raise UserError("The page runs models of this machine, not one behind an engine.")
    roles = {"draft": "DRAFTSCOPE_DRAFT", "diffusion": "DRAFTSCOPE_DIFFUSION"} if target else {}
    roles["datastore"] = "DRAFTSCOPE_DATASTORE"
    parts = {role: os.environ.get(name) or None for role, name in roles.items()}
    if parts.get("draft"):
        parts["draft"], *others = (path.strip() for path in parts["draft"].split(","))
        parts |= {Path(path).name: path for path in others if path}
    return (ModelPaths(target) if target else family()).with_parts(parts)


def address() -> tuple[str, int]:
    """Return the host and port to serve on: this machine only, unless the environment says otherwise, or on a Space."""
    hosted = "SPACE_ID" in os.environ
    host = os.environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if hosted else "127.0.0.1")
    return host, int(os.environ.get("GRADIO_SERVER_PORT") or 7860)


def take_folders(arguments: Sequence[str] = ()) -> None:
    """Put the folders of ``--methods DIR`` and ``--watch DIR`` into DRAFTSCOPE_METHODS and DRAFTSCOPE_WATCH.

    If other machines reach the page, methods from outside are left out, because strangers would run them. Raises
    UserError for other arguments, and for a folder that does not exist.
    """
    rest = list(arguments)
    while len(rest) > 1 and rest[0] in FOLDERS:
        os.environ[FOLDERS[rest[0]]] = rest[1]
        del rest[:2]
    if rest:
        raise UserError(
            f"app.py takes --methods DIR and --watch DIR, and nothing else: {one_line(' '.join(rest))}."
        )
    if address()[0] not in LOOPBACK:
        os.environ.pop(OUTSIDE, None)
    outside_folders()
    watched_folder()


def watched_folder() -> Path | None:
    """Return the folder whose records the page lists, or None if the host has named none. Raises UserError if there is
    no such folder."""
    named = os.environ.get(WATCH)
    if named and not Path(named).is_dir():
        raise UserError(f"There is no folder {one_line(named)} to watch.")
    return Path(named).resolve() if named else None


def allowed_models(environment: Mapping[str, str] = os.environ) -> Allowed:
    """Return the models that visitors may bring: DRAFTSCOPE_OWN_MODELS, a comma-separated list of Hub names
    (owner/name, owner/*, *), folders, and models behind engines (vllm://HOST:PORT/NAME or …/*); "off" allows none.

    If it is not set, every name and folder is allowed on a machine that only its owner reaches, and nothing elsewhere.
    Raises UserError for an invalid address of an engine.
    """
    setting = environment.get("DRAFTSCOPE_OWN_MODELS")
    if setting is None:
        return Allowed(("*", "/")) if address()[0] in LOOPBACK else Allowed()
    if setting.strip().lower() in ("", "off", "0", "no"):
        return Allowed()
    listed = tuple(model.strip() for model in setting.split(",") if model.strip())
    for model in filter(is_served, listed):
        read(model)
    return Allowed(listed)
