"""Turns the markdown of a lesson into a tree of plain nodes.

A node is a string, or one of: {"t": tag, "c": nodes} an element of ELEMENTS; {"to": address, "c"} a link; {"math"} an
element of a formula; {"number"} a number from a run. The browser makes elements of the nodes and inserts text as text;
HTML in the markdown is text like any other.
"""

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.dollarmath import dollarmath_plugin

from engine.errors import UserError
from presets.lessons.formulas import formula
from presets.lessons.numbers import number

ELEMENTS = {
    "paragraph": "p",
    "em": "em",
    "strong": "strong",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "heading": "h4",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "hr": "hr",
}
LINKS = ("https://", "lesson:", "method:", "watch:", "compare:")
"""The allowed beginnings of a link's address: a page elsewhere, or a place on this page."""
READER = MarkdownIt("js-default").use(dollarmath_plugin, allow_space=False)


def blocks(markdown: str) -> list[SyntaxTreeNode]:
    """Return the blocks of a text, in order."""
    return SyntaxTreeNode(READER.parse(markdown)).children


def nodes(markdown: str) -> list:
    """Return a text without directives as nodes. Raises UserError."""
    return [node for block in blocks(markdown) for node in of_block(block)]


def line(markdown: str) -> list:
    """Return a sentence or two as the nodes inside a paragraph. Raises UserError for other blocks."""
    paragraphs = nodes(markdown)
    if [node for node in paragraphs if not isinstance(node, dict) or node.get("t") != "p"]:
        raise UserError(f"Only plain sentences can stand here: {markdown[:60]!r}.")
    return [inside for paragraph in paragraphs for inside in paragraph["c"]]


def of_block(block: SyntaxTreeNode) -> list:
    """Return the nodes of a block that is not a directive. Raises UserError for a block that a lesson cannot hold."""
    kind = block.type
    if kind in ("inline", "text", "softbreak", "hardbreak", "code_inline", "math_inline", "link"):
        return _inline(block)
    if kind in ("math_block", "math_inline_double"):
        return [{"formula": formula(block.content, display=True)}]
    if kind == "fence" and not block.info:
        return [{"t": "pre", "c": [block.content]}]
    if kind not in ELEMENTS:
        raise UserError(f"A lesson cannot hold this: {kind}.")
    inside = [node for child in block.children for node in of_block(child)]
    if kind == "paragraph" and block.hidden:
        return inside
    return [{"t": ELEMENTS[kind], "c": inside}]


def _inline(node: SyntaxTreeNode) -> list:
    kind = node.type
    if kind == "text":
        return [node.content] if node.content else []
    if kind in ("softbreak", "hardbreak"):
        return [" "] if kind == "softbreak" else [{"t": "br", "c": []}]
    if kind == "math_inline":
        return [formula(node.content, display=False)]
    if kind == "code_inline":
        if node.content.startswith("="):
            return [number(node.content[1:])]
        return [{"t": "code", "c": [node.content]}]
    inside = [item for child in node.children for item in of_block(child)]
    if kind != "link":
        return inside
    address = str(node.attrs["href"])
    if not address.startswith(LINKS):
        raise UserError(f"A link must begin with one of {', '.join(LINKS)}: {address!r}.")
    return [{"to": address, "c": inside}]
