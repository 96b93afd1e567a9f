"""All ways of drafting, by key."""

from engine.drafters.adablock import AdaptiveBlockDrafter
from engine.drafters.aded import AdaptiveDraftDrafter
from engine.drafters.aggressive import AggressiveDrafter
from engine.drafters.base import Drafter, Kept
from engine.drafters.bild import BigLittleDrafter
from engine.drafters.ccd import CoherentDrafter
from engine.drafters.chain import ChainDrafter
from engine.drafters.chimera import ChimeraDrafter
from engine.drafters.clover import CloverDrafter
from engine.drafters.ddtree import DDTreeDrafter
from engine.drafters.deer import DeerDrafter
from engine.drafters.dflash import DFlashDrafter
from engine.drafters.diffuspec import DiffuSpecDrafter
from engine.drafters.dimple import DimpleDrafter
from engine.drafters.dynamic_exit import DynamicExitDrafter
from engine.drafters.dyspec import DySpecDrafter
from engine.drafters.ead import EntropyAdaptiveDrafter
from engine.drafters.eagle import EagleDrafter
from engine.drafters.easyspec import EasySpecDrafter
from engine.drafters.falcon import FalconDrafter
from engine.drafters.gad import GeneralisedAggressiveDrafter
from engine.drafters.hidden_transfer import HiddenTransferDrafter
from engine.drafters.hydra import HydraDrafter
from engine.drafters.jacobi import JacobiDrafter
from engine.drafters.kangaroo import KangarooDrafter
from engine.drafters.learn2pd import LearnedParallelDrafter
from engine.drafters.localleap import LocalLeapDrafter
from engine.drafters.lookahead import LookaheadDrafter
from engine.drafters.lud import LexicalUnitDrafter
from engine.drafters.mdsd import MDSDGreedy
from engine.drafters.medusa import MedusaDrafter
from engine.drafters.multi_chain import MultiChainDrafter
from engine.drafters.none import NoDrafter
from engine.drafters.omnidraft import OmniDraftDrafter
from engine.drafters.online import OnlineDrafter
from engine.drafters.pearl import PearlDrafter
from engine.drafters.ppd import PromptDecodingDrafter
from engine.drafters.prompt_lookup import PromptLookupDrafter
from engine.drafters.rapid import RapidDrafter
from engine.drafters.rasd import RetrievalAugmentedDrafter
from engine.drafters.reflective import ReflectiveDrafter
from engine.drafters.rsd_c import RSDConstant
from engine.drafters.rsd_s import RSDBeam
from engine.drafters.s2d import SortedDrafter
from engine.drafters.sjd import SpeculativeJacobiDrafter
from engine.drafters.smartspec import SmartSpecDrafter
from engine.drafters.specdec_pp import SpecDecPlusPlusDrafter
from engine.drafters.specreason import SpecReasonDrafter
from engine.drafters.speculative_thinking import SpeculativeThinkingDrafter
from engine.drafters.stree import STreeDrafter
from engine.drafters.suffix import SuffixDrafter
from engine.drafters.suffix_hybrid import SuffixHybridDrafter
from engine.drafters.swift import SwiftDrafter
from engine.drafters.token_recycling import TokenRecyclingDrafter
from engine.drafters.vocabtrim import VocabTrimDrafter
from engine.errors import LISTED, unknown

__all__ = ["Drafter", "Kept", "drafter", "drafters"]

_ALL = (
    NoDrafter,
    ChainDrafter,
    DySpecDrafter,
    RSDConstant,
    RSDBeam,
    MultiChainDrafter,
    MDSDGreedy,
    STreeDrafter,
    PromptLookupDrafter,
    SuffixDrafter,
    SuffixHybridDrafter,
    AggressiveDrafter,
    GeneralisedAggressiveDrafter,
    TokenRecyclingDrafter,
    AdaptiveDraftDrafter,
    RetrievalAugmentedDrafter,
    RapidDrafter,
    JacobiDrafter,
    SpeculativeJacobiDrafter,
    LookaheadDrafter,
    DFlashDrafter,
    DDTreeDrafter,
    BigLittleDrafter,
    EntropyAdaptiveDrafter,
    ReflectiveDrafter,
    SpecReasonDrafter,
    SpeculativeThinkingDrafter,
    PearlDrafter,
    SmartSpecDrafter,
    SpecDecPlusPlusDrafter,
    VocabTrimDrafter,
    SortedDrafter,
    EasySpecDrafter,
    OnlineDrafter,
    OmniDraftDrafter,
    DimpleDrafter,
    LocalLeapDrafter,
    CoherentDrafter,
    LearnedParallelDrafter,
    AdaptiveBlockDrafter,
    DiffuSpecDrafter,
    DeerDrafter,
    MedusaDrafter,
    HydraDrafter,
    CloverDrafter,
    ChimeraDrafter,
    SwiftDrafter,
    EagleDrafter,
    FalconDrafter,
    DynamicExitDrafter,
    KangarooDrafter,
    LexicalUnitDrafter,
    PromptDecodingDrafter,
    HiddenTransferDrafter,
)


def drafters() -> dict[str, type[Drafter]]:
    """Every drafter class by key, in the order in which the page offers them."""
    return {cls.key: cls for cls in _ALL}


def drafter(key: str) -> type[Drafter]:
    """The drafter class of this key. Raises UserError that names the known keys."""
    known = drafters()
    if key not in known:
        raise unknown("drafter", key, known, LISTED)
    return known[key]
