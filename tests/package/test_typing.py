"""What a user's type checker learns from the package, by mypy on a program of ten lines."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import torch
from attention_book import KeyValueCache, LanguageModel, MultiHeadAttention, masked_softmax

x = torch.randn(2, 5, 8)
attention = MultiHeadAttention(8, 2, rotary_base=10000.0)
reveal_type(attention(x, x, x, causal=True, cache=KeyValueCache()))
reveal_type(masked_softmax(x, causal=True))
model = LanguageModel(9, 8, 2, 16, 2)
reveal_type(model(torch.ones(1, 3, dtype=torch.long)))
reveal_type(model.generate(torch.ones(1, 3, dtype=torch.long), 4))
attention(x, x, x, casual=True)
"""


def test_a_call_is_a_tensor_and_a_misspelt_argument_an_error(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # From its folder, so that the settings of this repository do not count.
    command = [sys.executable, "-m", "mypy", "--no-incremental", program.name]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert said.count('Revealed type is "torch._tensor.Tensor"') == 4, said
    assert 'Unexpected keyword argument "casual"' in said
    assert "Found 1 error" in said
