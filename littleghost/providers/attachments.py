"""Images and documents as OpenAI's dialects want them."""

from __future__ import annotations

import base64

from littleghost.messages import Document
from littleghost.providers.wire_text import clean_text


def data_url(media_type: str, data: bytes) -> str:
    """Write bytes as a data URL."""
    return f"data:{clean_text(media_type)};base64,{base64.b64encode(data).decode('ascii')}"


def document_text(document: Document) -> str | None:
    """Give a document that is text as text, its name first; None for any other.

    Services take files of a few kinds only, and all of them take text.
    """
    if document.media_type.startswith("text/") or document.media_type == "application/json":
        text = clean_text(document.data.decode("utf-8", "replace"))
        return f"Document {clean_text(document.name)}:\n\n{text}"
    return None
