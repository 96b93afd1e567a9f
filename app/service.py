"""Endpoints for the host of the server: /health and /metrics. Neither reveals anything about a single visitor."""

import os
from dataclasses import asdict

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import completions, guard, live, metrics, shutdown, template, warm
from app.policy import Policy
from app.settings import LIMITS, OPENAI
from app.shares import Shares
from app.turns import TURNS
from engine.fast.cpu.budget import graph_memory


async def health(_: Request) -> JSONResponse:
    """Answer 200 while runs can begin, and 503 while the server is closing.

    Status "loading": drafters are being tried ahead of time, and a run may have to wait for that. "graphs": the
    compiled graphs beyond one for each model, and the bytes that they take and may take. "limits":
    ``app.settings.Limits``.
    """
    if shutdown.closing.is_set():
        return JSONResponse({"status": "closing"}, 503)
    kept = graph_memory()
    graphs = {"count": len(kept), "bytes": kept.used, "most_bytes": kept.most}
    status = "ready" if warm.ready.is_set() else "loading"
    return JSONResponse({"status": status, "graphs": graphs, "limits": asdict(LIMITS)})


async def told(_: Request) -> Response:
    return Response(metrics.as_text(), media_type=CONTENT_TYPE_LATEST)


def app_settings(head: str, shares: Shares) -> dict:
    """Return the settings of gradio's web application besides the page. head: the HTML added to the document."""
    template.adapt()
    routes = [Route("/health", health)]
    if os.environ.get("DRAFTSCOPE_METRICS", "1") != "0":
        routes.append(Route("/metrics", told))
    if OPENAI:
        routes += completions.ROUTES
    return {
        "routes": routes,
        "middleware": [Middleware(Policy, head=head)],
        "lifespan": guard.around(shares),
    }


def measure() -> None:
    """Show at /metrics how many runs and compiled graphs there are now."""
    metrics.gauge("vllm:num_requests_running", "Runs that advance now.", live.seats.running)
    metrics.gauge("vllm:num_requests_waiting", "Runs in line.", lambda: TURNS.counts()[1])
    metrics.gauge("draftscope_kept_runs", "Runs kept for visitors.", lambda: len(live.seats))
    kept = graph_memory()
    metrics.gauge(
        "draftscope_graphs", "Compiled graphs beyond one for each model.", lambda: len(kept)
    )
    metrics.gauge("draftscope_graph_bytes", "Memory that these graphs take.", lambda: kept.used)
    metrics.gauge(
        "draftscope_graph_bytes_limit", "Memory that these graphs may take.", lambda: kept.most
    )
