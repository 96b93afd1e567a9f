"""The counts that Prometheus reads at /metrics.

Where vLLM has a metric of the same meaning, the metric here has vLLM's name, so that vLLM's dashboards work here: a
*draft* is a step that drafted something, a *draft token* a drafted token that the target looked at, a *position* is
the place of a drafted token in its draft, from 0. In a tree every node is a draft token. The ``drafter`` label is ours.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

REGISTRY = CollectorRegistry()
for _collector in (ProcessCollector, PlatformCollector, GCCollector):
    _collector(registry=REGISTRY)

BY_DRAFTER = ("model_name", "drafter")
FINISHED = {
    "eos": "stop",
    "stop": "stop",
    "length": "length",
    "context": "length",
    "cancelled": "abort",
    "error": "error",
}
"""Why a run stopped: the word in a trace, and vLLM's word."""


def _counter(name: str, told: str, labels: tuple[str, ...] = BY_DRAFTER) -> Counter:
    return Counter(name, told, labels, registry=REGISTRY)


DRAFTS = _counter("vllm:spec_decode_num_drafts", "Steps that drafted something.")
DRAFT_TOKENS = _counter("vllm:spec_decode_num_draft_tokens", "Drafted tokens.")
ACCEPTED = _counter("vllm:spec_decode_num_accepted_tokens", "Drafted tokens that were kept.")
ACCEPTED_PER_POSITION = _counter(
    "vllm:spec_decode_num_accepted_tokens_per_pos",
    "Drafted tokens that were kept, by their place in the draft, from 0.",
    (*BY_DRAFTER, "position"),
)
PROMPT_TOKENS = _counter("vllm:prompt_tokens", "Tokens of prompts.")
NEW_TOKENS = _counter("vllm:generation_tokens", "Tokens written.")
ENDED = _counter(
    "vllm:request_success", "Runs that ended, by why.", (*BY_DRAFTER, "finished_reason")
)
FIRST_STEP = Histogram(
    "vllm:time_to_first_token_seconds",
    "From asking for a run to its first step.",
    ("model_name",),
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    registry=REGISTRY,
)
STEPS = _counter("draftscope_steps", "Steps of the engine: passes of the target after the prompt.")
ENGINE_SECONDS = _counter(
    "draftscope_engine_seconds", "Engine time, by stage of a step.", (*BY_DRAFTER, "stage")
)
TURNED_AWAY = _counter(
    "draftscope_turned_away", "Requests that were refused before they reached the page.", ("kind",)
)
REFUSED = _counter("draftscope_refused", "Runs that could not begin, told in a sentence.", ("tab",))


def gauge(name: str, told: str, value: Callable[[], float]) -> None:
    """Declare a gauge whose value comes from a call of ``value`` each time the metrics are read."""
    Gauge(name, told, registry=REGISTRY).set_function(value)


def as_text() -> bytes:
    return generate_latest(REGISTRY)
