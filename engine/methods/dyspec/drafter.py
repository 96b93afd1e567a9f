"""A tree that grows at its likeliest open place, DySpec (``engine.methods.shared.grown_tree``)."""

from engine.methods.shared.grown_tree import GrownTree


class DySpecDrafter(GrownTree):
    key = "dyspec"
    title = "Tree, DySpec"
    summary = "A draft model grows a tree, always at the open place whose token is likeliest to be accepted."

    def device_twin(self):
        if self.costs is not None:
            return self
        from engine.methods.dyspec.device import DeviceDySpec

        return DeviceDySpec(self.settings, self.draft, self.vocabulary)
