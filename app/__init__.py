"""The web front, the only package that imports gradio.

Two things must be done before anything else is imported. The Hub's client must never send the host's token by itself,
because a visitor may have chosen what it fetches; and on ZeroGPU ``spaces`` must come before torch.
"""

import os

os.environ["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"

from app import zero as zero
