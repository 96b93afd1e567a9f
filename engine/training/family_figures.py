"""Measures the models of the family. All measurements are in one dictionary, from which the model card is written."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable
from pathlib import Path

from engine.methods import drafters
from engine.parts.loading import ModelPaths
from engine.run import RunRequest, open_run
from engine.training import evaluate, gains
from engine.training.corpus import read_corpora
from engine.training.generators import MAKERS, examples
from engine.training.generators.words import Vocabulary
from engine.training.new_models import parameter_count

NEW_TOKENS = 96
PER_WORKLOAD = 8
GAIN_PROMPTS = 4  # prompts per workload; each is run once for every drafter and every draft size
SAMPLES = 5
TEMPERATURE = 0.8
DEPTHS = 6
SHOWN = ("chain", "dyspec", "prompt_lookup", "dflash", "ddtree")
"""The drafters in the model card: two that use the draft model, two that use the diffusion drafter, and one that
copies from the text."""


def chat_prompts(tokenizer) -> list[list[int]]:
    """The tokens of the first held-out chats, each up to the assistant's last turn."""
    stream = examples("chat", 2, Vocabulary(), held_out=True)
    return [tokenizer(e.prompt).input_ids for e in itertools.islice(stream, SAMPLES)]


def probe_prompts(tokenizer, data: Path, per_workload: int) -> dict[str, list[list[int]]]:
    """Workload -> held-out prompts as token ids. For stories, these are the first 12 tokens of validation stories; for
    all other workloads, prompts of the generators."""
    stories = read_corpora(data, "valid")["story"][:per_workload]
    prompts = {"story": [tokenizer(s).input_ids[:12] for s in stories]}
    for workload in MAKERS:
        stream = examples(workload, 2, Vocabulary(), held_out=True)
        rows = itertools.islice(stream, per_workload)
        prompts[workload] = [tokenizer(e.prompt).input_ids for e in rows]
    return prompts


def samples(target, tokenizer, prompts: dict[str, list[list[int]]]) -> dict[str, list[dict]]:
    """Workload -> samples of the target. Each sample is one of the first prompts, as text, with a greedy answer and a
    randomly drawn one."""
    return {
        workload: [
            {
                "prompt": tokenizer.decode(ids),
                "greedy": evaluate.complete(target, tokenizer, ids, NEW_TOKENS),
                "drawn": evaluate.complete(target, tokenizer, ids, NEW_TOKENS, TEMPERATURE, seed),
            }
            for seed, ids in enumerate(ids_list[:SAMPLES])
        ]
        for workload, ids_list in prompts.items()
    }


def probe_texts(tokenizer, prompts: dict[str, list[list[int]]]) -> dict[str, list[str]]:
    return {w: [tokenizer.decode(ids) for ids in ids_list] for w, ids_list in prompts.items()}


def write_gains(
    paths: ModelPaths,
    parts: dict[str, Path],
    tokenizer,
    data: Path,
    needs: Collection[str] | None = None,
) -> dict[str, dict[int, float]]:
    """Measure the gain (tokens per step) of each draft size, and write the gains to a file beside each model. Returns
    drafter -> size -> gain. parts: role -> folder of another model for this role, whose gains are measured as well.
    needs: only drafters that need one of these models are measured; None: all."""
    texts = probe_texts(tokenizer, probe_prompts(tokenizer, data, GAIN_PROMPTS))
    curves = gains.write(paths, texts, NEW_TOKENS, needs)
    for need, part in parts.items():
        if needs is None or need in needs:
            gains.write(paths.with_parts({need: str(part)}), texts, NEW_TOKENS, {need})
    return curves


def summaries(models: ModelPaths, cls, prompts: Iterable[str], new_tokens: int) -> list[dict]:
    """The summary lines of greedy runs, one run per prompt. The draft size is the drafter's ``usual_size``, which is
    the same on every machine."""
    options = {cls.size_option: cls.usual_size} if cls.size_option else {}
    lines = []
    for prompt in prompts:
        run = open_run(RunRequest(prompt, models, cls.key, options, max_new_tokens=new_tokens))
        for _ in run.steps():
            pass
        lines.append(json.loads(run.summary()))
    return lines


def by_depth(lines: list[dict]) -> list[float | None]:
    """For depths 1, 2, ..., the share of reached nodes that were accepted, over all runs; None for a depth that was
    never reached. lines: the runs' summaries."""
    shares = []
    for depth in range(DEPTHS):
        rows = [s["acceptance_by_depth"][depth : depth + 1] for s in lines]
        reached, accepted = (sum(r[0][k] for r in rows if r) for k in ("reached", "accepted"))
        shares.append(accepted / reached if reached else None)
    return shares


def runs(
    models: ModelPaths, prompts: dict[str, list[str]], new_tokens: int, need: str | None = None
) -> dict:
    """Workload -> drafter of `SHOWN` -> mean tokens per step over all runs, and the share of accepted nodes by depth.
    need: only drafters that need this model; None: all."""
    figures: dict[str, dict] = {}
    for workload, workload_prompts in prompts.items():
        figures[workload] = {}
        for cls in (drafters()[key] for key in SHOWN if key in drafters()):
            missing = not cls.needs.keys() <= models.parts.keys()
            if missing or (need and need not in cls.needs):
                continue
            lines = summaries(models, cls, workload_prompts, new_tokens)
            name = f"{cls.key}, {cls.usual_size} nodes" if cls.size_option else cls.key
            figures[workload][name] = {
                "mean accepted": sum(s["new_tokens"] for s in lines)
                / sum(s["steps"] for s in lines),
                "by depth": by_depth(lines),
            }
    return figures


def measure(models: dict, paths: ModelPaths, parts: dict[str, Path], tokenizer, data: Path) -> dict:
    """All figures of the family. models: name -> loaded model. paths: the folders of the same models, with which the
    engine runs. parts: role -> folder of another model for this role, which is measured as well."""
    prompts = probe_prompts(tokenizer, data, PER_WORKLOAD)
    shown = {**prompts, "chat": chat_prompts(tokenizer)} if tokenizer.chat_template else prompts
    texts = probe_texts(tokenizer, prompts)
    figures = {
        "parameters": {name: parameter_count(model) for name, model in models.items()},
        "target": evaluate.report(models["target"], tokenizer, data, per_workload=20),
        "draft": evaluate.report(models["draft"], tokenizer, data, per_workload=20),
        "operations": evaluate.operations_report(models["target"], tokenizer, data, count=25),
        "runs": runs(paths, texts, NEW_TOKENS),
        "parts": {},
        "samples": samples(models["target"], tokenizer, shown),
    }
    for need, part in parts.items():
        replaced = paths.with_parts({need: str(part)})
        figures["parts"][part.name] = runs(replaced, texts, NEW_TOKENS, need)
    return figures
