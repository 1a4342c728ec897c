"""Right, in another way: row by row, with log-softmax."""

import torch


def masked_softmax(scores, valid_lens):
    weights = torch.zeros_like(scores)
    for example, length in enumerate(valid_lens.tolist()):
        real = scores[example, :, :length]
        weights[example, :, :length] = torch.log_softmax(real, dim=-1).exp()
    return weights
