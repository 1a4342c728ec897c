"""Store a picture with 256 colours: less than half of its bytes, and no difference that one sees.

A drawing has few colours, and thousands at the edges of its letters and lines. The commonest stay
as they are, so areas keep their shade. To these come colours that are farthest from all that are
kept, one after another (Gonzalez, 1985), and every other colour becomes the nearest.
"""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image, PngImagePlugin

COLOURS = 256  #: as many as a PNG with a palette has
COMMONEST = 64


def with_palette(stored: str) -> str:
    """A PNG in base64 with a palette, and the texts that it carries; one that has it stays."""
    picture = Image.open(io.BytesIO(base64.b64decode(stored)))
    if picture.mode == "P":
        return stored
    pixels = np.asarray(picture.convert("RGBA"))
    numbers, places, counts = np.unique(
        pixels.view(np.uint32), return_inverse=True, return_counts=True
    )
    colours = numbers.view(np.uint8).reshape(-1, 4)
    seen = colours.astype(float)
    seen[:, :3] *= seen[:, 3:] / 255  # of what is transparent, little is seen
    kept = [*np.argsort(-counts, kind="stable")[:COMMONEST]]
    far = np.stack([_distances(seen, colour) for colour in kept]).min(axis=0)
    while len(kept) < min(COLOURS, len(colours)):
        kept.append(far.argmax())
        far = np.minimum(far, _distances(seen, kept[-1]))
    nearest = np.stack([_distances(seen, colour) for colour in kept]).argmin(axis=0)
    made = Image.fromarray(nearest.astype(np.uint8)[places].reshape(pixels.shape[:2]))
    made.putpalette(colours[kept].tobytes(), "RGBA")
    texts = PngImagePlugin.PngInfo()
    for name, text in getattr(picture, "text", {}).items():
        texts.add_text(name, text)
    written = io.BytesIO()
    made.save(written, "PNG", optimize=True, pnginfo=texts, dpi=picture.info.get("dpi"))
    return base64.b64encode(written.getvalue()).decode()


def _distances(seen: np.ndarray, colour: int) -> np.ndarray:
    return ((seen - seen[colour]) ** 2).sum(axis=1)
