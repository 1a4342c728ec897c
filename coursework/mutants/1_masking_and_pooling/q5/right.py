"""Right, in another way."""

import torch


def attention_pool(x, W, w, valid_lens):
    pooled = []
    for example, length in zip(x, valid_lens.tolist(), strict=True):
        scores = torch.tanh(torch.nn.functional.linear(example[:length], W)) @ w
        pooled.append(torch.softmax(scores, 0) @ example[:length])
    return torch.stack(pooled)
