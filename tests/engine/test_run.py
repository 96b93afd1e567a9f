"""Opening runs."""

from concurrent.futures import ThreadPoolExecutor

from engine.parts import loading
from engine.run import open_run
from tests.engine.family import request


def test_models_are_opened_by_several_threads_at_once():
    """transformers loads through global state; two visitors' first runs must not meet in it."""
    loading._language_model.cache_clear()
    loading._diffusion.cache_clear()
    drafters = ["chain", "dflash", "none", "ddtree", "dyspec", "prompt_lookup"]
    with ThreadPoolExecutor(len(drafters)) as pool:
        runs = list(pool.map(lambda key: open_run(request("A cat", drafter=key)), drafters))
    assert all(run.step() for run in runs)
    assert loading._language_model.cache_info().misses == 2
