"""Not (d): the softmax is over the last axis, the keys."""

cause_2 = "d"
