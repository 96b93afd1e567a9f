"""Turns LaTeX formulas into MathML elements, as nodes of a lesson's text."""

from xml.etree import ElementTree

from latex2mathml import exceptions
from latex2mathml.converter import convert

from engine.errors import UserError

REFUSED = (
    *(one for one in vars(exceptions).values() if isinstance(one, type)),
    *(ElementTree.ParseError, ValueError, LookupError, TypeError, RecursionError, StopIteration),
)
"""The errors that the converter raises for text that is not LaTeX."""
KEPT = {"display", "stretchy", "accent", "mathvariant", "form", "width", "linethickness"}
"""Attributes that a formula's elements keep."""


def formula(latex: str, display: bool) -> dict:
    """Return a formula as a node. display: whether it has a line of its own. Raises UserError for text that is not
    LaTeX."""
    try:
        written = convert(latex, display="block" if display else "inline")
        root = ElementTree.fromstring(written)
    except REFUSED:
        raise UserError(f"The formula {latex!r} cannot be read.") from None
    return _node(root)


def _node(element: ElementTree.Element) -> dict:
    node = {"math": element.tag.rpartition("}")[2]}
    attributes = {name: value for name, value in element.attrib.items() if name in KEPT}
    inside = [_node(child) for child in element]
    if element.text and element.text.strip():
        inside = [element.text, *inside]
    return {
        **node,
        **({"a": attributes} if attributes else {}),
        **({"c": inside} if inside else {}),
    }


def symbols_in(node: object) -> set[str]:
    """Return every identifier in the formulas of these nodes."""
    if isinstance(node, list):
        return set().union(*map(symbols_in, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    own = {node["c"][0]} if node.get("math") == "mi" and node.get("c") else set()
    return own.union(
        *(symbols_in(value) for value in node.values() if isinstance(value, dict | list))
    )
