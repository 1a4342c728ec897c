"""Right, in another way: exponentials by hand, in float64."""

import torch


def masked_softmax(scores, valid_lens):
    mask = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    filled = scores.double().masked_fill(~mask, -torch.inf)
    largest = filled.max(dim=-1, keepdim=True).values.nan_to_num(neginf=0.0)
    powers = (filled - largest).exp()
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-300)
