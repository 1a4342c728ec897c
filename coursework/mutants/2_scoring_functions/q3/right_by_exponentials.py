"""Right, in another way: the tanh by exponentials, in float64."""


def additive_scores(queries, keys, W_q, W_k, w_v):
    q, k = (queries @ W_q.T)[:, :, None], (keys @ W_k.T)[:, None]
    twice = (2 * (q + k).double()).exp()
    return (1 - 2 / (twice + 1)) @ w_v.double()
