"""Run by vLLM's Python: what vLLM writes by itself, and with each of our drafters inside.

Standard input: JSON, {"model", "prompts": lists of token ids, "tokens", "classes"}. Standard output, last line: JSON, the texts by
class ("" is plain decoding), and how many drafted tokens were kept and drafted.
"""

import json
import os
import sys

os.environ |= {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


def written(given: dict, cls: str) -> dict:
    from vllm import LLM, SamplingParams
    from vllm.distributed import cleanup_dist_env_and_memory

    speculation = {
        "method": "custom_class",
        "model": f"engine.serving.vllm.{cls}",
        "num_speculative_tokens": 6,
    }
    llm = LLM(
        given["model"],
        dtype="float32",
        enforce_eager=True,
        max_model_len=256,
        max_num_seqs=8,  # so that requests come and go
        disable_log_stats=False,
        speculative_config=speculation if cls else None,
    )
    sampling = SamplingParams(temperature=0, max_tokens=given["tokens"])
    prompts = [{"prompt_token_ids": tokens} for tokens in given["prompts"]]
    texts = [
        list(answer.outputs[0].token_ids)
        for answer in llm.generate(prompts, sampling, use_tqdm=False)
    ]
    counts = {metric.name: getattr(metric, "value", 0) for metric in llm.get_metrics()}
    held = 0
    if cls:
        drafter = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner.drafter
        held = sum(map(len, drafter._requests.values()))
    del llm
    cleanup_dist_env_and_memory()
    names = ("accepted", "draft")
    kept, drafted = (counts.get(f"vllm:spec_decode_num_{name}_tokens", 0) for name in names)
    return {"texts": texts, "kept": kept, "drafted": drafted, "held": held}


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    told = {cls: written(given, cls) for cls in given["classes"]}
    print(json.dumps(told))
