"""How test processes share the files: some begin with the files of the page, the others with those that compute.

Every process that tests the page keeps a server of its own, which takes gigabytes and half a minute to start. So only
PAGE of the processes begin with the page; each process turns to the other files once its own are dealt out.
"""

from xdist.scheduler import LoadFileScheduling

PAGE = 2
"""Processes that begin with the page. Its tests wait for a good part of their time."""


class Lanes(LoadFileScheduling):
    """Each free process gets the next whole file of its lane, in the order of the collection."""

    def _assign_work_unit(self, node) -> None:
        of_page = self.nodes.index(node) < PAGE and len(self.nodes) > 1
        mine = next((file for file in self.workqueue if is_of_page(file) == of_page), None)
        if mine is not None:
            self.workqueue.move_to_end(mine, last=False)
        super()._assign_work_unit(node)


def is_of_page(file: str) -> bool:
    return file.startswith("tests/app/")
