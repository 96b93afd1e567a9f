"""What recording costs vLLM: rounds of requests with the recorder and without, in turn, in one process of vLLM's environment.

Prints a line of JSON: the milliseconds of each round, both medians, how much longer the one with the recorder is, and which share of
its time vLLM itself spends on recording.
Arguments: target, speculative setting (JSON), requests a round, tokens a request, pairs of rounds.
"""

import json
import os
import statistics
import sys
import tempfile
import time

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_NUM_OF_RESERVED_CPU": "0"}

NAMES = ("execute_model", "_sample", "propose_draft_token_ids")
TAPPED = ("rejection_sample", "generate_uniform_probs")


def main() -> None:
    from vllm import LLM, SamplingParams
    from vllm.v1.sample import rejection_sampler

    from engine.serving.vllm.record_pipe import RecordPipe
    from engine.serving.vllm.recorder_plugin import about
    from engine.serving.vllm.step_taps import StepTaps

    target, setting, requests, tokens, pairs = (
        sys.argv[1],
        json.loads(sys.argv[2]),
        *map(int, sys.argv[3:]),
    )
    llm = LLM(target, dtype="float32", enforce_eager=True, max_model_len=256, max_num_seqs=requests,
              enable_prefix_caching=False, speculative_config=setting)  # fmt: skip
    runner = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner
    folder = tempfile.mkdtemp()
    plain = {name: getattr(rejection_sampler, name) for name in TAPPED}
    taps = StepTaps(runner, RecordPipe(folder, 1_000_000_000, about(runner)), 1.0)
    look, looked = taps._look, [0.0]

    def timed(*given, **named) -> None:
        began = time.perf_counter()
        look(*given, **named)
        looked[0] += 1000 * (time.perf_counter() - began)

    taps._look = timed
    taps.install()
    tapped = {name: getattr(rejection_sampler, name) for name in TAPPED}
    watched = {name: vars(runner).pop(name) for name in NAMES}
    prompts = [
        f"Once upon a time there were {number} dogs. One day the dogs" for number in range(requests)
    ]
    params = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)

    def round_of(recording: bool) -> float:
        vars(rejection_sampler).update(tapped if recording else plain)
        for name in NAMES:
            vars(runner).pop(name, None)
        if recording:
            vars(runner).update(watched)
        began = time.perf_counter()
        llm.generate(prompts, params, use_tqdm=False)
        return 1000 * (time.perf_counter() - began)

    for recording in (True, False):
        round_of(recording)
    times, looked[0] = {True: [], False: []}, 0.0
    for pair in range(pairs):
        for recording in ((True, False), (False, True))[pair % 2]:
            times[recording].append(round_of(recording))
        print(
            pair,
            *(round(times[way][-1]) for way in times),
            round(looked[0]),
            file=sys.stderr,
            flush=True,
        )
    on, off = statistics.median(times[True]), statistics.median(times[False])
    ratios = [one / other for one, other in zip(times[True], times[False], strict=True)]
    told = {"on": times[True], "off": times[False], "median_on": on, "median_off": off,
            "longer": on / off - 1, "longer_by_pair": statistics.median(ratios) - 1,
            "taps": looked[0] / sum(times[True])}  # fmt: skip
    print(json.dumps(told), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
