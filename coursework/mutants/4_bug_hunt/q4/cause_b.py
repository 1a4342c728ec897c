"""Not (b): the largest score is taken over the tokens of a row."""

cause_4 = "b"
