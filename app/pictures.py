"""Shows the picture of a prompt on the page, and makes a visitor's picture small."""

from engine.errors import UserError
from engine.scenes import brought
from engine.scenes.prompt_picture import is_numbered, pixels


def prompt_picture(given: object) -> dict[str, str | bool]:
    """Return {"address": the picture's address in a prompt, "image": a data address that shows it, "film": whether it
    is a film}, or {"error": a sentence}. given: the address of a picture or film in a prompt, or a visitor's file as a
    data address."""
    try:
        if not isinstance(given, str):
            raise UserError("A picture is asked for by its address.")
        short = is_numbered(given) or len(given) <= brought.SMALL
        address = given if short else brought.small(brought.bytes_of(given))
        shown = pixels(address)
        film = len(shown) > shown.shape[1]
        return {"address": address, "image": brought.png(shown), "film": film}
    except UserError as error:
        return {"error": str(error)}
