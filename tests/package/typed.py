"""What a user's type checker learns from the package: a call is a tensor, a wrong name an error.

It is checked with the types and never run. If the last line were no error, its mark would be one.
"""

from typing import assert_type

import torch
from torch import Tensor

from attention_book import KeyValueCache, LanguageModel, MultiHeadAttention, masked_softmax

x = torch.randn(2, 5, 8)
attention = MultiHeadAttention(8, 2, rotary_base=10000.0)
assert_type(attention(x, x, x, causal=True, cache=KeyValueCache()), Tensor)
assert_type(masked_softmax(x, causal=True), Tensor)
model = LanguageModel(9, 8, 2, 16, 2)
assert_type(model(torch.ones(1, 3, dtype=torch.long)), Tensor)
assert_type(model.generate(torch.ones(1, 3, dtype=torch.long), 4), Tensor)
attention(x, x, x, casual=True)  # type: ignore[call-arg]
