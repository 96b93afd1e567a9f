"""Builds the whole page, and serves it."""

import logging
import os

import gradio as gr

from app import (
    answers,
    api,
    assets,
    connections,
    idle,
    live,
    logs,
    service,
    shutdown,
    theme,
    warm,
    words,
)
from app.compare import Compare
from app.kept_answers import kept_answers
from app.learn import Learn
from app.menu import offer
from app.methods import Methods
from app.own import own
from app.parts import SPARE, html
from app.seats import sweep_forever
from app.settings import LIMITS, MCP, address
from app.shares import Shares
from app.tune import Tune
from app.visitors import VISITORS, proxies
from app.watch import Watch
from engine.methods import unusable
from presets import outside_cards

log = logging.getLogger("draftscope")
KEPT = (live.seats, live.memories, own)
"""The stores of what the server keeps for visitors."""


def build() -> gr.Blocks:
    """Build the page. Everything built here is sent to the browser when the page opens."""
    with gr.Blocks(title=words.TITLE, analytics_enabled=False, fill_width=True) as page:
        html(
            "DraftscopePage.masthead(element, props);",
            name=words.TITLE,
            line=words.HEADLINE,
            tour=words.TOUR,
            elem_classes="pg-masthead-block",
        )
        with gr.Tabs(elem_id="rooms"):
            with gr.Tab("Watch", id="watch"):
                watch = Watch()
            with gr.Tab("Compare", id="compare"):
                compare = Compare()
            with gr.Tab("Tune", id="tune"):
                tune = Tune()
            with gr.Tab("Methods", id="methods"):
                methods = Methods()
            with gr.Tab("Learn", id="learn"):
                learn = Learn()
        limits = [list(limit) for limit in LIMITS.told()]
        html("DraftscopePage.allowed(element, props.limits);", limits=limits, elem_id="allowed")
        html("DraftscopePage.foot(element, props.line);", line=words.FOOT)
        watch.wire(page, methods)
        compare.wire(page, watch.own)
        tune.wire(page, watch.own)
        learn.wire()
        page.load(None, js="() => { DraftscopePage.openRoom(); }")
        page.unload(_leave)
        api.offer_endpoints()
    most = LIMITS.running + LIMITS.waiting + SPARE
    page.queue(max_size=2 * most, default_concurrency_limit=8, api_open=False)
    page.shares = shares = Shares(page)
    shares.woken = idle.rest(page)
    answers.in_sentences(page)
    return page


def _leave(request: gr.Request) -> None:
    """Note that the connection to a browser has ended: the tab was closed, or the network broke for a moment.

    Gradio does not say which. After a break the same session comes back, so the visitor's things are kept for a while.
    If the session is back already, on another connection, the end of the old connection means nothing.
    """
    if VISITORS.silent(request.session_hash):
        for kept in KEPT:
            kept.cut_off(request.session_hash)


def launch(page: gr.Blocks, **settings) -> None:
    """Serve the page until a signal comes. The models load while the page is being opened."""
    host, port = address()
    head = assets.head(offer())
    logs.configure()
    os.environ["FORWARDED_ALLOW_IPS"] = proxies()  # read by uvicorn
    for sentence in [*unusable().values(), *outside_cards()[1].values()]:
        log.warning(sentence)
    connections.use()
    service.measure()
    sweep_forever(*KEPT, kept_answers)
    warm.warm(after=4.0)
    page.launch(
        **{
            "server_name": host,
            "server_port": port,
            "share": False,
            "ssr_mode": False,
            "run_history": False,
            "footer_links": [],
            "favicon_path": assets.WEB / "mark.svg",
            "max_file_size": LIMITS.trace_bytes,
            "theme": theme.theme(),
            "head": head,
            "app_kwargs": service.app_settings(head, page.shares),
            "mcp_server": MCP,
            "prevent_thread_lock": True,
            "state_session_capacity": 500,
            # a waiting run holds a thread; other threads draw figures and read files
            "max_threads": LIMITS.running + LIMITS.waiting + SPARE + 16,
            **settings,
        }
    )
    shutdown.serve_until_told(page, live.seats)
