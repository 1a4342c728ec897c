"""Not (c): the bias is added to the scores, before the softmax."""

cause_2 = "c"
