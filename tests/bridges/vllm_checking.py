"""Run by the Python of an environment that has vLLM: makes its own configuration of each exported setting, from standard input."""

import json
import sys


def main() -> None:
    from vllm.config import ModelConfig, ParallelConfig, SpeculativeConfig

    asked = json.load(sys.stdin)
    target = ModelConfig(model=asked["target"], dtype="float32", max_model_len=512)
    told = []
    for text in asked["settings"]:
        try:
            made = SpeculativeConfig(
                **json.loads(text),
                target_model_config=target,
                target_parallel_config=ParallelConfig(),
            )
            told.append({"method": made.method, "tokens": made.num_speculative_tokens})
        except Exception as error:  # noqa: BLE001  (the test shows it)
            told.append({"error": f"{type(error).__name__}: {error}"})
    print("\n" + json.dumps(told))


main()
