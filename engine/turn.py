"""The engine's one lock."""

import threading

ENGINE_LOCK = threading.Lock()
"""Held for each step, so that no lane's clock contains another's work."""
