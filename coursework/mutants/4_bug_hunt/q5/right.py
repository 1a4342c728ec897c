"""Right, in another way."""

cause_5 = " c"
number_5 = 3


def repaired_5(scores, values, tile):
    powers = (scores - scores.max()).double().exp()
    return powers @ values.double() / powers.sum()
