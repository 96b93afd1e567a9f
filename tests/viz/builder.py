"""Makes contract-valid traces without a model: a toy target p, a toy draft q, the real rules.

Every number in a trace follows the rule that the run names, so that sentences and figures can be
checked against it.
"""

import json
import random
from dataclasses import dataclass, field

TALE = (
    "the cat dog sat on a mat and saw little bird red house ran to her old was said big happy sun"
)
WORDS = [*(f" {word}" for word in TALE.split()), ".", ",", "\n"]
KINDS = {"one_hot": "one_hot", "iid": "iid", "chain": "iid"}


@dataclass
class Toy:
    """One made-up run. style: chain, tree (without replacement), iid, one_hot, none."""

    style: str = "tree"
    rule: str = "rejection"
    steps: int = 12
    depth: int = 4
    width: int = 3
    budget: int = 16
    temperature: float = 0.8
    seed: int = 0
    words: list[str] = field(default_factory=lambda: list(WORDS))
    prompt: str = "Once upon a time there was a little cat."
    pieces: list[str] | None = None
    key: str = "toy"
    milliseconds: float = 5.0
    cut: int = 6
    """Tokens that survive truncation; the others show probability 0."""

    def lines(self) -> list[dict]:
        self.random = random.Random(self.seed)
        prompt = self.pieces or self.prompt.split(" ")
        run = {
            "kind": "run",
            "schema": 1,
            "target": {
                "name": "toy-target",
                "parameters": 14_600_000,
                "vocab_size": len(self.words),
                "dtype": "float32",
                "device": "cpu",
            },
            "drafter": {
                "key": self.key,
                "family": self._family(),
                "options": {"depth": self.depth},
            },
            "verifier": {"key": self._verifier(), "lossless": True, "options": {}},
            "sampling": {
                "temperature": 0.0 if self.rule == "greedy" else self.temperature,
                "top_k": 0,
                "top_p": 1.0,
                "seed": self.seed,
            },
            "prompt": {"text": self.prompt, "tokens": list(range(len(prompt))), "pieces": prompt},
        }
        steps, position = [], len(prompt)
        for index in range(self.steps):
            steps.append(self._step(index, position))
            position += len(steps[-1]["output"]["tokens"])
        return [run, *steps, self._summary(steps)]

    def ndjson(self) -> str:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines())

    def _family(self) -> str:
        return {"chain": "chain", "one_hot": "retrieval", "none": "none"}.get(self.style, "tree")

    def _verifier(self) -> str:
        return self.rule

    def _law(self, sharp: float) -> list[float]:
        weights = [self.random.expovariate(1) ** sharp for _ in self.words]
        kept = sorted(weights, reverse=True)[: self.cut][-1]
        weights = [w if w >= kept else 0.0 for w in weights]
        total = sum(weights)
        return [w / total for w in weights]

    def _pair(self) -> tuple[list[float], list[float]]:
        """Return p and q, which are similar but not the same."""
        p, other = self._law(3.0), self._law(3.0)
        q = [0.45 * a + 0.55 * b for a, b in zip(p, other, strict=True)]
        return p, q

    def _step(self, index: int, position: int) -> dict:
        laws = {-1: self._pair()}
        parents, tokens, depths = [], [], []
        draws = {}
        frontier = [-1]
        while frontier and self.style != "none" and len(tokens) < self.budget:
            parent = frontier.pop(0)
            depth = 1 if parent < 0 else depths[parent] + 1
            if depth > self.depth:
                continue
            draws[parent] = []
            for token in self._draws(laws[parent][1]):
                known = [n for n in draws[parent] if tokens[n] == token]
                if known:
                    draws[parent].append(known[0])
                    continue
                if len(tokens) >= self.budget:
                    break
                node = len(tokens)
                parents.append(parent)
                tokens.append(token)
                depths.append(depth)
                draws[parent].append(node)
                laws[node] = self._pair()
                frontier.append(node)
        judgements, walk, path, final, kind, residuals = self._judge(laws, draws, tokens)
        status = ["ignored"] * len(tokens)
        for judgement in judgements:
            status[judgement["node"]] = "rejected"
        for node in path:
            status[node] = "accepted"
        output = [tokens[node] for node in path] + [final]
        scale = self.milliseconds
        return {
            "kind": "step",
            "index": index,
            "position": position,
            "nodes": {
                "token": tokens,
                "piece": [self.words[t] for t in tokens],
                "parent": parents,
                "depth": depths,
                "q": [laws[a][1][t] for a, t in zip(parents, tokens, strict=True)]
                if self.style != "one_hot"
                else [None] * len(tokens),
                "p": [laws[a][0][t] for a, t in zip(parents, tokens, strict=True)],
                "status": status,
                "source": [self.style] * len(tokens),
            },
            "judgements": judgements,
            "output": {"tokens": output, "pieces": [self.words[t] for t in output], "final": kind},
            "distributions": [
                {
                    "node": place,
                    "p": self._few(laws[place][0]),
                    "q": [] if self.style in ("one_hot", "none") else self._few(laws[place][1]),
                    "residual": self._few(residuals[place]) if place in residuals else [],
                }
                for place in walk
            ],
            "milliseconds": {
                "draft": round(scale * 0.3 * (self.style != "none"), 3),
                "verify": round(scale * (0.8 + 0.3 * self.random.random()), 3),
                "judge": round(scale * 0.06, 3),
                "commit": round(scale * 0.08, 3),
            },
            "drafter": {},
        }

    def _draws(self, q: list[float]) -> list[int]:
        count = 1 if self.style in ("chain", "one_hot") else self.width
        if self.style == "iid":
            return self.random.choices(range(len(q)), q, k=count)
        order = sorted(range(len(q)), key=lambda t: -q[t] * (0.5 + self.random.random()))
        return [t for t in order[:count] if q[t] > 0]

    def _few(self, law: list[float]) -> list[list]:
        order = sorted(range(len(law)), key=lambda t: -law[t])[:8]
        return [[t, self.words[t], law[t]] for t in order]

    def _judge(self, laws, draws, tokens):
        if self.rule in ("greedy", "sampler_match"):
            return self._follow(laws, draws, tokens)
        judgements, walk, residuals, place = [], [-1], {}, -1
        while True:
            p, q = list(laws[place][0]), list(laws[place][1])
            kept = None
            for node in draws.get(place, []):
                token = tokens[node]
                kind = KINDS.get(self.style, "without_replacement")
                share = 1.0 if kind == "one_hot" or q[token] <= 0 else q[token]
                accept, coin = min(1.0, p[token] / share), self.random.random()
                judgements.append(
                    {
                        "node": node,
                        "rule": kind,
                        "p": p[token],
                        "q": share,
                        "accept": accept,
                        "coin": coin,
                    }
                )
                if coin < accept:
                    kept = node
                    break
                if kind == "one_hot":
                    p[token] = 0.0
                else:
                    p = [max(0.0, a - b) for a, b in zip(p, q, strict=True)]
                    if kind == "without_replacement":
                        q[token] = 0.0
                        q = _normal(q)
                p = _normal(p) if sum(p) > 0 else list(laws[place][0])
                residuals[place] = p
            if kept is None:
                break
            walk.append(kept)
            place = kept
        final = self.random.choices(range(len(p)), p)[0]
        kind = "recovered" if draws.get(place) else "bonus"
        return judgements, walk, walk[1:], final, kind, residuals

    def _follow(self, laws, draws, tokens):
        judgements, walk, place = [], [-1], -1
        while True:
            p = laws[place][0]
            if self.rule == "greedy":
                wanted = max(range(len(p)), key=lambda t: p[t])
            else:
                wanted = self.random.choices(range(len(p)), p)[0]
            match = None
            for node in draws.get(place, []):
                hit = tokens[node] == wanted
                shown = float(hit) if self.rule == "greedy" else p[tokens[node]]
                judgements.append(
                    {
                        "node": node,
                        "rule": self.rule,
                        "p": shown,
                        "q": None,
                        "accept": float(hit),
                        "coin": None,
                    }
                )
                match = node if hit else match
            if match is None:
                break
            walk.append(match)
            place = match
        kind = "recovered" if draws.get(place) else "bonus"
        return judgements, walk, walk[1:], wanted, kind, {}

    def _summary(self, steps: list[dict]) -> dict:
        histogram, rows = [], {}
        total = dict.fromkeys(("prefill", "draft", "verify", "judge", "commit"), 0.0)
        total["prefill"] = 7.5
        for step in steps:
            nodes = step["nodes"]
            accepted = [i for i, s in enumerate(nodes["status"]) if s == "accepted"]
            histogram += [0] * (len(accepted) + 1 - len(histogram))
            histogram[len(accepted)] += 1

            def row(depth: int) -> dict:
                return rows.setdefault(
                    depth, {"depth": depth, "reached": 0, "judged": 0, "accepted": 0}
                )

            for place in (entry["node"] for entry in step["distributions"]):
                if place in nodes["parent"]:
                    row(1 if place < 0 else nodes["depth"][place] + 1)["reached"] += 1
            for node in {j["node"] for j in step["judgements"]}:
                row(nodes["depth"][node])["judged"] += 1
            for node in accepted:
                row(nodes["depth"][node])["accepted"] += 1
            for name, value in step["milliseconds"].items():
                total[name] += value
        tokens = sum(len(step["output"]["tokens"]) for step in steps)
        total["total"] = sum(total.values())
        reached = sum(r["reached"] for r in rows.values())
        return {
            "kind": "summary",
            "new_tokens": tokens,
            "steps": len(steps),
            "target_calls": len(steps) + 1,
            "mean_accepted": tokens / max(1, len(steps)),
            "acceptance_rate": sum(r["accepted"] for r in rows.values()) / reached
            if reached
            else None,
            "accepted_histogram": histogram,
            "acceptance_by_depth": [rows[d] for d in sorted(rows)],
            "milliseconds": total,
            "tokens_per_second": 1000 * tokens / total["total"],
            "stop": "length",
            "text": "".join(p for step in steps for p in step["output"]["pieces"]),
        }


def _normal(law: list[float]) -> list[float]:
    total = sum(law)
    return [value / total for value in law]
