"""Not (b): the mask is True for the real tokens."""

cause_3 = "b"
