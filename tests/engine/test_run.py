"""Opening runs."""

from concurrent.futures import ThreadPoolExecutor

from engine.parts.denoiser import open_denoiser
from engine.parts.draft import open_model
from engine.run import open_run
from tests.engine.family import offered, request


def test_models_are_opened_by_several_threads_at_once():
    """transformers loads through global state; two visitors' first runs must not meet in it."""
    open_model.cache_clear()
    open_denoiser.cache_clear()
    keys = offered()
    with ThreadPoolExecutor(len(keys)) as pool:
        runs = list(pool.map(lambda key: open_run(request("A cat", drafter=key)), keys))
    assert all(run.step() for run in runs)
    assert open_model.cache_info().misses == 2 and open_denoiser.cache_info().misses == 1
