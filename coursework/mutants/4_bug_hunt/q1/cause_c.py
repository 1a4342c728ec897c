"""Not (c): the mask must come before the softmax."""

cause_1 = "c"
