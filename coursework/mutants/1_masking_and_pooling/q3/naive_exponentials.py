"""The exponentials overflow or vanish: subtract the largest allowed score of each row first."""


def masked_softmax(scores, mask):
    powers = scores.exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)
