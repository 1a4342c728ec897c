"""The code that a chapter shows is the code that runs."""

import ast

import pytest
import torch

from attention_book import DotProductAttention, merge_heads, split_heads
from attention_book.listing import show


def test_a_listing_is_the_code_without_its_docstring(capsys):
    show(split_heads, merge_heads, DotProductAttention.forward)
    said = capsys.readouterr().out
    split, merge, forward = ast.parse(said).body
    assert [split.name, merge.name, forward.name] == ["split_heads", "merge_heads", "forward"]
    assert all(ast.get_docstring(function) is None for function in (split, merge, forward))
    assert said.startswith("@checked\ndef split_heads(x: Tensor, num_heads: int) -> Tensor:\n")
    assert '"""' not in said


def test_a_function_without_a_docstring_loses_nothing(capsys):
    def half(x):
        # A comment stays.
        return x / 2

    show(half)
    assert capsys.readouterr().out == ("def half(x):\n    # A comment stays.\n    return x / 2\n")


def test_what_has_no_python_code_is_refused():
    with pytest.raises(TypeError):
        show(torch.matmul)
