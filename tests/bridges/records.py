"""Records of other engines as they write them, small enough to be counted by hand: steps that draft three tokens and keep 0, 3, 1."""

import json

VLLM = {
    "mean_acceptance_length": 7 / 3,
    "draft_acceptance_rate": 4 / 9,
    "acceptance_histogram": [1, 1, 0, 1],
    "num_spec_steps": 3,
    "num_accepted_draft_tokens": 4,
    "num_draft_tokens": 9,
    "num_spec_tokens": 3,
}
DETAILED = {**VLLM, "per_step_accepted": [0, 3, 1], "per_step_drafted": [3, 3, 3]}
BY_LENGTH = {**VLLM, "acceptance_histogram_by_draft_length": {"3": [1, 1, 0, 1]}}
SHORTER = {**VLLM, "num_draft_tokens": 8}
"""One draft was shorter, and it is not told which."""
SGLANG = {
    "spec_verify_ct": 3,
    "spec_num_proposed_drafts": 9,
    "spec_num_correct_drafts": 4,
    "spec_correct_drafts_histogram": [1, 1, 0, 1],
    "completion_tokens": 7,
}
OLD_SGLANG = {
    "spec_verify_ct": 3,
    "spec_draft_token_num": 9,
    "spec_accept_token_num": 4,
    "spec_accept_histogram": [1, 1, 0, 1],
    "completion_tokens": 7,
}
LLAMA = {"draft_n": 9, "draft_n_accepted": 4, "predicted_n": 7, "predicted_ms": 35.0}
POSITIONS = [
    {"position": 1, "reached": 3, "accepted": 2},
    {"position": 2, "reached": 2, "accepted": 1},
    {"position": 3, "reached": 1, "accepted": 1},
]
KEPT_ONLY = [{"position": each["position"], "accepted": each["accepted"]} for each in POSITIONS]


def vllm(record, name="a"):
    return {
        "id": name,
        "usage": {"completion_tokens": 7},
        "metrics": {"speculative_decoding": record},
    }


def metrics(engine="vllm", drafts=3, drafted=9, accepted=4, kept=(2, 1, 1)):
    """Prometheus's text of one server."""
    label = '{engine="0",model_name="m"}'
    lines = [
        f"# HELP {engine}:spec_decode_num_drafts_total Number of drafts.",
        f"# TYPE {engine}:spec_decode_num_drafts_total counter",
        f"{engine}:spec_decode_num_drafts_total{label} {drafts}.0",
        f"{engine}:spec_decode_num_drafts_created{label} 1.7e+09",
        f"{engine}:spec_decode_num_draft_tokens_total{label} {drafted}.0",
        f"{engine}:spec_decode_num_accepted_tokens_total{label} {accepted}.0",
        "process_open_fds 12.0",
    ]
    for place, count in enumerate(kept):
        place_label = f'{{engine="0",model_name="m",position="{place}"}}'
        lines.append(
            f"{engine}:spec_decode_num_accepted_tokens_per_pos_total{place_label} {count}.0"
        )
    return "\n".join(lines) + "\n"


GAUGES = """# HELP sglang:spec_accept_length Mean acceptance length.
sglang:spec_accept_length{tp_rank="0"} 2.5
sglang:spec_accept_length{tp_rank="1"} 2.5
sglang:spec_accept_rate{tp_rank="0"} 0.5
sglang:spec_verify_calls_total{engine_type="unified"} 40.0
"""


def streamed(*chunks):
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n"
