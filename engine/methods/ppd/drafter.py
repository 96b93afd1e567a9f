"""Prompt tokens in the target's pass predict the coming tokens, which the next pass verifies as a tree.

Chen et al., "Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM Inference" (2024); see
``engine.methods.shared.probing``.
"""

from engine.methods.shared.probing import ProbedTreeDrafter


class PromptDecodingDrafter(ProbedTreeDrafter):
    key = "ppd"
    title = "Prompt tokens, PPD"
    summary = "Trained prompt tokens in the target's own pass predict the tokens to come."
    needs = {"ppd": "prompt_tokens"}
    probes_are = "prompt tokens"
    options = ProbedTreeDrafter.usual_options(probes_are)
