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
    environment takes precedence. ``limits`` reads them, everything on the server is held to them, and ``told`` lists
    them for the page.
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
    """Runs that take turns, a step each."""
    waiting: int = 24
    """Runs that may stand in line behind them."""
    share: int = 24
    """Steps after which a run lets the runs in line go first."""
    kept_runs: int = 96
    """Runs kept for visitors: running, paused, or just finished."""
    client_running: int = 3
    """Runs of one address that take turns. A share does not slow an address down while nobody else is there: all runs
    together take one step at a time."""
    client_waiting: int = 16
    """Runs of one address that may stand in line."""
    client_kept: int = 32
    """Runs kept for one address."""
    client_requests: int = 256
    """Requests of one address that may be open; a page holds two or three."""
    client_calls: int = 8
    """Calls of one address that are worked on at once; others wait."""
    client_rate: int = 20
    """Requests of one address that are worked on in a second, once it has used what it saved up; others wait."""
    unread_seconds: int = 10
    """Seconds after which a request whose answer nobody reads is let go."""
    unread_megabytes: int = 256
    """Most memory for all answers that wait to be read; one address may take a quarter."""
    body_megabytes: int = 10
    """Largest request; one that brings a file of ``trace_megabytes`` always fits."""
    body_seconds: int = 30
    """Seconds within which a request must be complete."""
    bodies_megabytes: int = 128
    """Most memory for all requests that are being received; one address may take a quarter."""
    kept_seconds: int = 600
    """Seconds after which a paused run is let go."""
    memories: int = 64
    """Visitors for whom drafters may remember something."""
    memory_megabytes: int = 8
    """Most that drafters may remember for one visitor."""
    kv_megabytes: int = 256
    """Most keys and values that one run may hold, in all of its lanes and models together."""
    trace_megabytes: int = 8
    """Largest trace that a run may write, and that a visitor may open."""
    tune_prompts: int = 24
    """Most prompts that one tuning measures on; of more, a sample is drawn."""
    tune_kilobytes: int = 256
    """Largest text or file of prompts."""
    tune_tokens: int = 64
    """Most tokens that a tuning writes after each prompt."""
    tune_seconds: int = 240
    """Most seconds that one tuning may compute."""
    answers_megabytes: int = 16
    """Most memory for the runs of programs' answers that wait to be looked at (``kept_seconds``); one address may take a
    quarter."""
    resident_models: int = 4
    """Models of visitors' own that are held in memory at once."""
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
        """The most that one request may have. A trace grows by an eighth when it is sent as JSON."""
        return max(self.body_megabytes * 1_000_000, self.trace_bytes * 5 // 4)

    @property
    def unread_bytes(self) -> int:
        """The most that may be unread. A run says all that it wrote twice, as it goes on and at its end."""
        return max(self.unread_megabytes * 1_000_000, 8 * self.trace_bytes)

    @property
    def visitor_megabytes(self) -> int:
        """The most that one visitor may take: five runs with their traces (Watch, Compare, Tune, a lesson's, and one that
        measures the speed) and one memory."""
        return 5 * (self.kv_megabytes + self.trace_megabytes) + self.memory_megabytes

    def told(self) -> list[tuple[str, str]]:
        """The limits as the page lists them: (thing, amount)."""
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
    """The limits from the settings file, if there is one, and the environment.

    Raises UserError, one sentence, for a file that cannot be read, a name that is no setting, and a value that is not a
    whole number above 0: a host should hear of a mistake before visitors do.
    """
    given = _settings_file(environment.get(SETTINGS))
    known = {one.name for one in fields(Limits)}
    strange = sorted(given.keys() - known)
    if strange:
        raise unknown("setting", strange[0], sorted(known))
    for name in known:
        wanted = environment.get(f"DRAFTSCOPE_{name.upper()}")
        if wanted is not None:
            given[name] = wanted
    return Limits(**{name: _positive(name, value) for name, value in given.items()})


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
"""Whether OpenAI's clients find an endpoint here."""

AHEAD = ("all", "examples", "none")
"""How many drafters a server tries before its first visitor comes; see ``tried_ahead``."""


def tried_ahead(environment: Mapping[str, str] = os.environ) -> str:
    """The value of DRAFTSCOPE_AHEAD. It chooses the drafters that the server tries before its first visitor does: all
    that have their parts, those of the examples and races, or none. Raises UserError for anything else."""
    given = environment.get("DRAFTSCOPE_AHEAD", "").strip().lower() or AHEAD[0]
    if given not in AHEAD:
        raise UserError(f"DRAFTSCOPE_AHEAD must be one of {', '.join(AHEAD)}, not {given!r}.")
    return given


def model_paths(models: str = "") -> ModelPaths:
    """The models of this page: the host's own directories, else the embedded family. models: the name of another
    embedded family to use instead. Raises UserError for an unknown one.

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
    given = {role: os.environ.get(name) or None for role, name in roles.items()}
    if given.get("draft"):
        given["draft"], *others = (path.strip() for path in given["draft"].split(","))
        given |= {Path(path).name: path for path in others if path}
    return (ModelPaths(target) if target else family()).with_parts(given)


def address() -> tuple[str, int]:
    """Host and port to serve on: this machine only, unless told otherwise or on a Space."""
    hosted = "SPACE_ID" in os.environ
    host = os.environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if hosted else "127.0.0.1")
    return host, int(os.environ.get("GRADIO_SERVER_PORT") or 7860)


def take_folders(arguments: Sequence[str] = ()) -> None:
    """The folders of ``--methods DIR`` and ``--watch DIR``, else of DRAFTSCOPE_METHODS and DRAFTSCOPE_WATCH. Methods from outside are
    left out on a page that others reach, because strangers would run them. Raises UserError for other arguments, and for a
    name of no folder."""
    given = list(arguments)
    while len(given) > 1 and given[0] in FOLDERS:
        os.environ[FOLDERS[given[0]]] = given[1]
        del given[:2]
    if given:
        raise UserError(
            f"app.py takes --methods DIR and --watch DIR, and nothing else: {one_line(' '.join(given))}."
        )
    if address()[0] not in LOOPBACK:
        os.environ.pop(OUTSIDE, None)
    outside_folders()
    watched_folder()


def watched_folder() -> Path | None:
    """The folder whose records the page lists; None where the host has named none. Raises UserError for a name of no
    folder."""
    named = os.environ.get(WATCH)
    if named and not Path(named).is_dir():
        raise UserError(f"There is no folder {one_line(named)} to watch.")
    return Path(named).resolve() if named else None


def allowed_models(environment: Mapping[str, str] = os.environ) -> Allowed:
    """The models that visitors may bring: DRAFTSCOPE_OWN_MODELS, a comma-separated list of Hub names (owner/name,
    owner/*, *), folders, and models behind engines (vllm://HOST:PORT/NAME or …/*); "off" allows none.

    If it is not set, every name and folder is allowed on a machine that only its owner reaches, and nothing elsewhere. Raises
    UserError for an address that is none.
    """
    given = environment.get("DRAFTSCOPE_OWN_MODELS")
    if given is None:
        return Allowed(("*", "/")) if address()[0] in LOOPBACK else Allowed()
    if given.strip().lower() in ("", "off", "0", "no"):
        return Allowed()
    listed = tuple(one.strip() for one in given.split(",") if one.strip())
    for one in filter(is_served, listed):
        read(one)
    return Allowed(listed)
