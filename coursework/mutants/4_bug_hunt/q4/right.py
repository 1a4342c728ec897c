"""Right, in another way."""

import torch

cause_4 = "C"
number_4 = 1


def repaired_4(scores, starts, end, steps):
    follows = scores.argmax(dim=-1).tolist()
    rows = []
    for token in starts.tolist():
        row = []
        for _ in range(steps):
            token = end if end in row else follows[token]
            row.append(token)
        rows.append(row)
    return torch.tensor(rows)
