"""Images and documents as services want them."""

from __future__ import annotations

import base64

from littleghost.messages import Document
from littleghost.providers.wire_text import clean_text


def base64_text(data: bytes) -> str:
    """Write bytes as base64."""
    return base64.b64encode(data).decode("ascii")


def data_url(media_type: str, data: bytes) -> str:
    """Write bytes as a data URL."""
    return f"data:{clean_text(media_type)};base64,{base64_text(data)}"


def text_in(document: Document) -> str | None:
    """Give the text of a document that is text; None for any other.

    Services take files of a few kinds only, and all of them take text.
    """
    media_type = document.media_type.lower()
    if media_type.startswith("text/") or media_type == "application/json":
        return clean_text(document.data.decode("utf-8", "replace"))
    return None


def document_text(document: Document) -> str | None:
    """Give a document that is text as text, its name first; None for any other."""
    text = text_in(document)
    return None if text is None else f"Document {clean_text(document.name)}:\n\n{text}"
