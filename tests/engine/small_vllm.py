"""What vLLM hands to the recorder, in small: a runner that samples batches of requests as vLLM's rejection sampler does."""

import sys
from types import ModuleType, SimpleNamespace

import torch

from engine.serving.vllm.record_pipe import _plain
from engine.serving.vllm.record_process import RecordFolder
from engine.serving.vllm.request_record import Words
from engine.serving.vllm.step_taps import StepTaps
from presets import family

VOCABULARY, LONGEST = 40, 4
ABOUT = {
    "engine": "vLLM 0", "target": "house/embedded", "tokenizer": (family().target, None), "vocab_size": VOCABULARY,
    "dtype": "float32", "device": "cpu", "context": 200, "method": "draft_model", "draft": "draft", "tokens": LONGEST,
    "rule": "standard",
}  # fmt: skip


class DirectPipe:
    """Takes the place of ``RecordPipe``, and writes each posted record at once. full: whether the pipe takes no
    more."""

    def __init__(self, folder, most=10_000_000, **about) -> None:
        self.broken, self.full = "", False
        told = ABOUT | about
        self.folder = RecordFolder(str(folder), most, told, Words(*told["tokenizer"]))

    def post(self, copied, parcel) -> bool:
        if not self.full:
            self.folder.take(_plain(parcel))
        return not self.full


class SmallRunner:
    """A runner of batches in place of vLLM's. drawn: whether drafted tokens come with q."""

    def __init__(self, monkeypatch, drawn=True) -> None:
        self.sampler = ModuleType("vllm.v1.sample.rejection_sampler")
        self.sampler.rejection_sample = self.rejection_sample
        self.sampler.generate_uniform_probs = lambda size, *_: torch.rand(size, dtype=torch.float64)
        for name in ("vllm", "vllm.v1", "vllm.v1.sample"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, self.sampler.__name__, self.sampler)
        sys.modules["vllm.v1.sample"].rejection_sampler = self.sampler
        self.drawn, self.requests = drawn, {}
        self.input_batch = SimpleNamespace(req_ids=[], num_reqs=0)
        self.discard_request_mask = SimpleNamespace(np=torch.zeros(64, dtype=torch.bool).numpy())
        self.written: dict[str, list[int]] = {}

    def add(self, name: str, prompt=(5, 6, 7), **params) -> None:
        usual = {
            "temperature": 0.9, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": None, "eos_token_id": 0,
            "stop_token_ids": [], "max_tokens": 1000,
        }  # fmt: skip
        self.requests[name] = SimpleNamespace(
            sampling_params=SimpleNamespace(**usual | params),
            prompt_token_ids=list(prompt),
            output_token_ids=[],
        )
        self.written[name] = []

    def execute_model(self, scheduled) -> None:
        for name in scheduled.finished_req_ids:
            self.requests.pop(name, None)
        self.input_batch.req_ids = list(self.requests)
        self.input_batch.num_reqs = len(self.requests)
        if self.requests:
            self._sample(None, None)
            self.propose_draft_token_ids()

    def propose_draft_token_ids(self) -> None:
        pass

    def _sample(self, _logits, _metadata):
        counts = [LONGEST if self.written[name] else 0 for name in self.requests]
        size = sum(counts)
        laws = torch.randn(size, VOCABULARY).mul(2).softmax(-1)
        drafted = laws.multinomial(1)[:, 0].int() if size else torch.zeros(0, dtype=torch.int32)
        logits = laws.log() + torch.randn(size, VOCABULARY)
        q = laws if self.drawn else None
        self.last = SimpleNamespace(logits=logits, q=q, drafted=drafted)
        if size:
            out = self.sampler.rejection_sample(drafted, counts, LONGEST, None, q, logits, None)
        else:
            out = torch.randint(1, VOCABULARY, (len(counts), 1))
        for name, row in zip(self.requests, out.tolist(), strict=True):
            self.written[name] += [token for token in row if token >= 0]
            self.requests[name].output_token_ids += [-1]
        return SimpleNamespace(sampled_token_ids=out)

    def rejection_sample(self, drafted, counts, most, _sums, q, logits, _bonus):
        coins = self.sampler.generate_uniform_probs(len(drafted), counts, {}, None)
        p, out, start = logits.softmax(-1), torch.full((len(counts), most + 1), -1), 0
        for row, (count, request) in enumerate(zip(counts, self.requests.values(), strict=True)):
            greedy = request.sampling_params.temperature == 0
            for place in range(count):
                at, token = start + place, int(drafted[start + place])
                ratio = p[at, token] / (1.0 if q is None else q[at, token])
                kept = int(p[at].argmax()) == token if greedy else ratio >= coins[at]
                left = p[at].clone()
                left[token] = 0
                out[row, place] = token if kept else left.argmax()
                if not kept:
                    break
            else:
                out[row, count] = int(torch.randint(1, VOCABULARY, ()))
            start += count
        return out


def step(runner, finished=()) -> None:
    runner.execute_model(
        SimpleNamespace(
            finished_req_ids=set(finished),
            total_num_scheduled_tokens=len(set(runner.requests) - set(finished)),
        )
    )


def recorded(runner, pipe, share=1.0) -> None:
    StepTaps(runner, pipe, share).install()
