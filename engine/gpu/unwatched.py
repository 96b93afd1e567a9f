"""Who drafts where nobody watches: what is chosen on the device stays there as far as it can."""

from engine.drafters.base import Drafter
from engine.drafters.chain import ChainDrafter
from engine.drafters.ddtree import DDTreeDrafter
from engine.drafters.dflash import DFlashDrafter
from engine.drafters.dyspec import DySpecDrafter
from engine.gpu.device_block import DeviceDDTree, DeviceDFlash
from engine.gpu.device_chain import DeviceChain
from engine.gpu.device_growth import DeviceDySpec


def unwatched(drafter: Drafter) -> Drafter:
    """What drafts in its place for a target with slots: itself, or a twin that proposes the same
    and crosses to the host less often. A drafter that has not begun yet.

    ``prompt_lookup`` is its own: the host learns the kept ids anyway, and to look them up in its
    index is less than a launch.
    """
    kind = type(drafter)
    if kind is ChainDrafter and drafter.draft.slots:
        return DeviceChain(drafter)
    if kind is DySpecDrafter:
        return DeviceDySpec(drafter.settings, drafter.draft, drafter.vocabulary)
    if kind in (DFlashDrafter, DDTreeDrafter):
        twin = DeviceDFlash if kind is DFlashDrafter else DeviceDDTree
        return twin(drafter.settings, drafter.diffusion, drafter.target)
    return drafter
