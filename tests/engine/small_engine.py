"""A small serving engine: it answers /v1/models, /tokenize and /v1/completions as vLLM documents it, with the embedded target's
own log-probabilities, which transformers computes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from presets import family

NAME = "house/embedded"
CONTEXT = 96
MOST_LOGPROBS = 20  # vLLM's default


@cache
def _model():
    return AutoModelForCausalLM.from_pretrained(
        family().target
    ).eval(), AutoTokenizer.from_pretrained(family().target)


class SmallEngine:
    """asked: the bodies of the questions so far. keys: what came as authorization. wrong: path -> what answers there in the
    place of the engine."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.keys: set[str | None] = set()
        self.wrong: dict[str, Callable[[BaseHTTPRequestHandler, dict], None]] = {}
        self.port = 0

    @property
    def target(self) -> str:
        return f"vllm://127.0.0.1:{self.port}/{NAME}"

    def answer(self, path: str, body: dict) -> tuple[int, dict]:
        if path == "/v1/models":
            return 200, {
                "object": "list",
                "data": [{"id": NAME, "object": "model", "max_model_len": CONTEXT}],
            }
        if body.get("model") != NAME:
            return 404, {"error": {"message": "The model does not exist.", "type": "NotFoundError"}}
        if path == "/tokenize":
            tokens = _model()[1](body["prompt"], add_special_tokens=body["add_special_tokens"])[
                "input_ids"
            ]
            return 200, {"tokens": tokens, "count": len(tokens), "max_model_len": CONTEXT}
        if path != "/v1/completions":
            return 404, {"detail": "Not Found"}
        if body["prompt_logprobs"] > MOST_LOGPROBS:
            told = f"Requested prompt logprobs of {body['prompt_logprobs']}, which is greater than max allowed: {MOST_LOGPROBS}"
            return 400, {"error": {"message": told, "type": "BadRequestError"}}
        self.asked.append(body)
        choices = [_choice(index, prompt, body) for index, prompt in enumerate(body["prompt"])]
        return 200, {"object": "text_completion", "choices": choices}


@torch.no_grad()
def _choice(index: int, prompt: list[int], body: dict) -> dict:
    model, tokenizer = _model()
    rows = model(torch.tensor([prompt])).logits[0].log_softmax(-1)
    told: list[dict | None] = [None]
    for row, token in zip(rows, prompt[1:], strict=False):
        top = dict.fromkeys([token, *row.topk(body["prompt_logprobs"]).indices.tolist()])
        told.append(
            {
                str(one): {
                    "logprob": float(row[one]),
                    "rank": int((row >= row[one]).sum()),
                    "decoded_token": tokenizer.decode([one]),
                }
                for one in top
            }
        )
    top = rows[-1].topk(body["logprobs"])
    last = {
        f"token_id:{token}": p
        for token, p in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    }
    chosen = int(rows[-1].argmax())
    logprobs = {
        "tokens": [f"token_id:{chosen}"],
        "token_logprobs": [float(rows[-1, chosen])],
        "top_logprobs": [last],
    }
    return {
        "index": index,
        "text": tokenizer.decode([chosen]),
        "logprobs": logprobs,
        "prompt_logprobs": told,
        "finish_reason": "length",
    }


@contextmanager
def small_engine() -> Iterator[SmallEngine]:
    """One that answers until the context ends."""
    engine = SmallEngine()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            engine.keys.add(self.headers["Authorization"])
            length = int(self.headers["Content-Length"] or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            if self.path in engine.wrong:
                engine.wrong[self.path](self, body)
            else:
                give(self, *engine.answer(self.path, body))

        do_POST = do_GET

        def log_message(self, *told) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    engine.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()


def give(handler: BaseHTTPRequestHandler, status: int, answer: object, **headers: str) -> None:
    told = json.dumps(answer).encode()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(told)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(told)
