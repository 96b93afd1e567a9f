"""The picture of a prompt, on the page: shown where it is asked about, and made small where a visitor brings it."""

from engine.errors import UserError
from engine.scenes import brought
from engine.scenes.prompt_picture import is_numbered, pixels


def prompt_picture(given: object) -> dict[str, str | bool]:
    """given: the address of a picture or film, as in a prompt, or a visitor's file as a data address. Returns {"address", "image",
    "film"}: how a prompt names it, a data address that shows it, and whether it is a film; or {"error"}."""
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
