"""The precision needed to promise identical text."""

import torch

from engine.errors import UserError


def refuse_tf32(dtype: torch.dtype, device: torch.device) -> None:
    """Raises UserError where products of float32 matrices would be rounded to TF32 (10 bits), which makes
    the text of tree decoding differ from that of plain decoding."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    if dtype == torch.float32 and device.type == "cuda" and allowed:
        raise UserError(
            "float32 models need exact products: "
            "switch torch.backends.cuda.matmul.allow_tf32 off, or load the model in bfloat16."
        )
