"""Pack the built book into one zip that opens from a disk, with no network.

The same book gives the same bytes: the files are sorted, and none carries the time of its making.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parent.parent
NAME = "attention-shape-by-shape"


def pack(book: Path, packed: Path) -> None:
    with ZipFile(packed, "w") as archive:
        for file in sorted(file for file in book.rglob("*") if file.is_file()):
            entry = ZipInfo(f"{NAME}/{file.relative_to(book).as_posix()}")
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, file.read_bytes(), compresslevel=9)


def main() -> int:
    packed = ROOT / "_build" / f"{NAME}.zip"
    pack(ROOT / "_build" / "html", packed)
    size = packed.stat().st_size / 1e6
    print(f"The offline edition is {packed}, {size:.1f} MB: unpack it, open index.html in it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
