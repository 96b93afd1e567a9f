"""The engine's one lock."""

import threading

ENGINE_LOCK = threading.Lock()
"""Held for each step, so that no lane's time includes another lane's work."""
