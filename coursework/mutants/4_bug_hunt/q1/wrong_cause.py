"""Not (c): after the softmax, the weights would no longer sum to 1."""

cause_1 = "c"
