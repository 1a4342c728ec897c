"""One largest score is subtracted from all rows: rows far below it vanish. Each row needs its own."""


def masked_softmax(scores, mask):
    powers = (scores - scores[mask.expand_as(scores)].max()).exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)
