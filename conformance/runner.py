"""Hold a function against the cases: `python runner.py attention.json mine.py:attention`.

It needs NumPy only, and is an example for a runner in another language. The function gets the
inputs of a case by name, as arrays, and returns the output. Exit code 0: all right, 1: not.
"""

import json
import sys
from runpy import run_path

import numpy as np


def run(path, function):
    """Say of each case: right, the names of the mistakes that give these numbers, or unknown."""
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    for case in cases:
        if "upstream" in case["inputs"]:  # a gradient, for frameworks that have them
            continue
        inputs = {name: array(value) for name, value in case["inputs"].items()}
        got = np.asarray(function(**inputs))
        known = [("right", case["expected"])]
        known += [(one["note"], one["got"]) for one in case["accepted"]]
        known += [(" or ".join(one["names"]), one["got"]) for one in case["mistakes"]]
        said = [name for name, numbers in known if same(got, array(numbers))]
        yield case["id"], "; ".join(said) or "unknown"


def array(value):
    """Lists as an array; with the words nan, inf and -inf among them, of floats. Others stay."""
    if not isinstance(value, list):
        return value
    read = np.array(value)
    return read.astype(float) if read.dtype.kind == "U" else read


def same(got, wanted):
    """Equal to nine digits; for float32, 1e-4 and 1e-5 in place of them."""
    return got.shape == wanted.shape and np.allclose(got, wanted, 1e-9, 1e-9, equal_nan=True)


if __name__ == "__main__":
    file, _, name = sys.argv[2].partition(":")
    verdicts = dict(run(sys.argv[1], run_path(file)[name]))
    print(*(f"{case}: {said}" for case, said in verdicts.items()), sep="\n")
    sys.exit(any(said != "right" for said in verdicts.values()))
