"""The web front: gradio is imported here and nowhere else.

Two things must stand before anything else is imported: the Hub's client must never send the host's
token by itself, for what it fetches here may be a visitor's wish; and on ZeroGPU ``spaces`` comes
before torch.
"""

import os

os.environ["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"

from app import zero as zero
