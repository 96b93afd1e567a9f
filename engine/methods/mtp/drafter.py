"""Drafts with the multi-token-prediction layer of a base checkpoint.

DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024): besides the next token the model learns the token after it, by a
layer that reads W[norm(e(x_{t+1})); norm(h_t)], where h_t is the model's last state and e its embeddings. The model's
own head gives the law of x_{t+2}. From the second drafted token on, the layer reads its own state in place of h
("FastMTP: Accelerating LLM Inference with Enhanced Multi-Token Prediction", Cai et al., 2025).

Apart from its norms the layer is an EAGLE cell, so it drafts as an EAGLE cell does: a chain, or a tree if more nodes
are asked for than the chain has.
"""

from engine.methods.shared.cell_tree import CellTree


class MtpDrafter(CellTree):
    key = "mtp"
    title = "The checkpoint's own MTP layer"
    summary = "The extra layer with which the model learned to predict one token more drafts, again and again."
    needs = {"mtp": "mtp"}
    usual_size = 3
