"""Right, in another way."""

import torch

cause_3 = "c)"
number_3 = 2.0


def repaired_3(losses, lengths):
    real = torch.arange(losses.shape[1]) < lengths[:, None]
    return losses[real].double().mean().item()
