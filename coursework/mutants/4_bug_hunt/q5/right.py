"""Right, in another way."""

cause_5 = "c"
number_5 = 4


def repaired_5(scores):
    powers = scores.exp().tril()
    return powers / powers.sum(-1, keepdim=True)
