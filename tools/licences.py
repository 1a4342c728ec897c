"""List the book and what is installed for it with licences; fail if one states none."""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, distributions


def licence(package: Distribution) -> str:
    """What a package says of its licence: as an expression, a class, in words, in its text."""
    said = package.metadata
    classes = [line.split(" :: ")[-1] for line in said.get_all("Classifier", [])
               if line.startswith("License :: ")]  # fmt: skip
    classes = [name for name in classes if name != "OSI Approved"]
    words = (said.get("License") or "").strip().splitlines()
    texts = [package.read_text(f"licenses/{name}") for name in said.get_all("License-File", [])]
    named = [line.strip() for text in texts for line in (text or "").splitlines()
             if "license" in line.lower()]  # fmt: skip
    stated = [said.get("License-Expression"), "; ".join(classes), *words[:1], *named[:1]]
    return next(filter(None, stated), "" if holds_files(package) else "holds nothing of its own")


def holds_files(package: Distribution) -> bool:
    """Whether a package installs more than a description of itself: some only name others."""
    return any(not file.parts[0].endswith(".dist-info") for file in package.files or [])


def main() -> int:
    packages = {package.metadata["Name"]: package for package in distributions()}
    silent = []
    for name, package in sorted(packages.items(), key=lambda item: item[0].lower()):
        stated = licence(package)
        print(f"{name:32} {package.version:16} {stated}")
        if not stated:
            silent.append(name)
    print(f"{len(packages)} packages; without a stated licence: {', '.join(silent) or 'none'}")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
