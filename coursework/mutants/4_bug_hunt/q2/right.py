"""Right, in another way."""

import torch

cause_2 = "c"
number_2 = 1 + 3


def repaired_2(scores, valid_lens):
    rows = [torch.softmax(row[:n], 0) for row, n in zip(scores, valid_lens.tolist(), strict=True)]
    return torch.stack(
        [torch.nn.functional.pad(row, (0, scores.shape[1] - len(row))) for row in rows]
    )
