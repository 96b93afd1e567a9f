"""The picture of a prompt, on the page: shown where it is asked about, and made small where a visitor brings it."""

from engine.errors import UserError
from engine.scenes import brought
from engine.scenes.prompt_picture import SCENE, pixels


def prompt_picture(given: object) -> dict[str, str]:
    """given: the address of a picture, as in a prompt, or a visitor's file as a data address. Returns {"address", "image"}: how
    a prompt names it, and a data address that shows it; or {"error"}."""
    try:
        if not isinstance(given, str):
            raise UserError("A picture is asked for by its address.")
        short = given.startswith(SCENE) or len(given) <= brought.SMALL
        address = given if short else brought.small(brought.bytes_of(given))
        return {"address": address, "image": brought.png(pixels(address))}
    except UserError as error:
        return {"error": str(error)}
