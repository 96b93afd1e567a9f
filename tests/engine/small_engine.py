"""A small serving engine: it answers /v1/models, /tokenize, and /v1/completions as vLLM or /generate as SGLang documents it,
with the embedded target's own log-probabilities, which transformers computes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from torch import Tensor

from tests.engine.family import embedded_module, embedded_tokenizer

NAME = "house/embedded"
CONTEXT = 96
MOST_LOGPROBS, MOST_NAMED = 20, 128  # vLLM's default, and its bound


def embedded_rows(prompt: list[int]) -> Tensor:
    """Return the log-probabilities [T, V] after each token."""
    return _rows(tuple(prompt))


@lru_cache(64)
@torch.no_grad()
def _rows(prompt: tuple[int, ...]) -> Tensor:
    return embedded_module()(torch.tensor([prompt])).logits[0].log_softmax(-1)


def seeded_draw(law: Tensor, seed: int) -> int:
    """A token from the law [V]."""
    return int(torch.multinomial(law, 1, generator=torch.Generator().manual_seed(seed)))


class SmallEngine:
    """The engine behind the server. asked: the bodies of the requests so far. keys: their authorization headers. wrong:
    path -> the answer to give there instead."""

    def __init__(
        self,
        rows: Callable[[list[int]], Tensor] = embedded_rows,
        draw: Callable[[Tensor, int], int] = seeded_draw,
    ) -> None:
        self.rows, self.draw = rows, draw
        self.asked: list[dict] = []
        self.keys: set[str | None] = set()
        self.wrong: dict[str, Callable[[BaseHTTPRequestHandler, dict], None]] = {}
        self.port = 0

    @property
    def target(self) -> str:
        return f"vllm://127.0.0.1:{self.port}/{NAME}"

    @property
    def sglang_target(self) -> str:
        return self.target.replace("vllm", "sglang")

    def answer(self, path: str, body: dict) -> tuple[int, dict | list]:
        if path == "/v1/models":
            return 200, {
                "object": "list",
                "data": [{"id": NAME, "object": "model", "max_model_len": CONTEXT}],
            }
        if path == "/generate":
            self.asked.append(body)
            return 200, [self._generated(body, place) for place in range(len(body["input_ids"]))]
        if body.get("model") != NAME:
            return 404, {"error": {"message": "The model does not exist.", "type": "NotFoundError"}}
        if path == "/tokenize":
            tokens = embedded_tokenizer()(
                body["prompt"], add_special_tokens=body["add_special_tokens"]
            )["input_ids"]
            return 200, {"tokens": tokens, "count": len(tokens), "max_model_len": CONTEXT}
        if path != "/v1/completions":
            return 404, {"detail": "Not Found"}
        named = body.get("logprob_token_ids")
        if body.get("prompt_logprobs", 0) > MOST_LOGPROBS:
            told = f"Requested prompt logprobs of {body['prompt_logprobs']}, which is greater than max allowed: {MOST_LOGPROBS}"
            return 400, {"error": {"message": told, "type": "BadRequestError"}}
        if named and not len(named) == body["logprobs"] <= MOST_NAMED:
            return 400, {"error": {"message": "logprob_token_ids", "type": "BadRequestError"}}
        self.asked.append(body)
        return 200, {
            "object": "text_completion",
            "choices": [self._choice(index, body) for index in range(len(body["prompt"]))],
        }

    def _chosen(self, row: Tensor, sampling: dict, seed: str) -> int:
        if sampling["temperature"] == 0:
            return int(row.argmax())
        row = row.clone()
        for token, bias in sampling.get("logit_bias", {}).items():
            row[int(token)] += bias
        return self.draw(row.softmax(-1), sampling[seed])

    def _choice(self, index: int, body: dict) -> dict:
        """Return one choice of an answer, as vLLM writes it."""
        prompt = body["prompt"][index]
        rows = self.rows(prompt)
        chosen = self._chosen(rows[-1], body, "seed")
        shown = body.get("logprob_token_ids") or rows[-1].topk(body["logprobs"]).indices.tolist()
        last = {f"token_id:{token}": float(rows[-1, token]) for token in [chosen, *shown]}
        logprobs = {
            "tokens": [f"token_id:{chosen}"],
            "token_logprobs": [float(rows[-1, chosen])],
            "top_logprobs": [last],
        }
        told = {"index": index, "text": "", "logprobs": logprobs, "finish_reason": "length"}
        if "prompt_logprobs" not in body:
            return told
        top = rows[:-1].topk(body["prompt_logprobs"]).indices
        named = torch.cat([torch.tensor(prompt[1:], dtype=torch.long)[:, None], top], 1)
        values = rows[:-1].gather(1, named)
        ranks = (rows[:-1, None] >= values[..., None]).sum(-1)
        read: list[dict | None] = [None]
        for row in zip(named.tolist(), values.tolist(), ranks.tolist(), strict=True):
            entries = zip(*row, strict=True)
            read.append(
                {str(token): {"logprob": value, "rank": rank} for token, value, rank in entries}
            )
        return told | {"prompt_logprobs": read}

    def _generated(self, body: dict, place: int) -> dict:
        """Return one answer as SGLang writes it: its log-probabilities of the next tokens include the biases."""
        prompt, sampling = body["input_ids"][place], body["sampling_params"][place]
        rows, begin = self.rows(prompt), body["logprob_start_len"][place]
        chosen = self._chosen(rows[-1], sampling, "sampling_seed")
        after = rows[-1].clone()
        for token, bias in sampling.get("logit_bias", {}).items():
            after[int(token)] += bias
        after = after.log_softmax(-1)
        named, most = body.get("token_ids_logprob"), body["top_logprobs_num"]

        def entries(row: Tensor, tokens: list[int]) -> list[list]:
            return [[float(row[token]), token, None] for token in tokens]

        meta = {
            "output_token_logprobs": entries(after, [chosen]),
            "output_top_logprobs": [entries(after, after.topk(most).indices.tolist())],
            "input_token_logprobs": [],
            "input_top_logprobs": [],
        }
        if named:
            meta |= {
                "output_token_ids_logprobs": [entries(after, named)],
                "input_token_ids_logprobs": [],
            }
        for at in range(begin, len(prompt)) if begin >= 0 else ():
            row = rows[at - 1]
            told = [[[None, prompt[at], None]], None, None]
            if at > begin:
                top = row.topk(most).indices.tolist()
                told = [
                    entries(row, [prompt[at]]),
                    entries(row, top),
                    named and entries(row, named),
                ]
            meta["input_token_logprobs"] += told[0]
            meta["input_top_logprobs"].append(told[1])
            if named:
                meta["input_token_ids_logprobs"].append(told[2])
        return {"text": "", "meta_info": meta}


@contextmanager
def small_engine(port: int = 0) -> Iterator[SmallEngine]:
    """Yield an engine with the embedded target that answers until the context ends. port: 0 for a free one."""
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

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
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


def gives(status: int, answer: object) -> Callable[[BaseHTTPRequestHandler, dict], None]:
    return lambda handler, body: give(handler, status, answer)


def cut_off(handler: BaseHTTPRequestHandler, body: dict) -> None:
    """Break off in the middle of an answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
