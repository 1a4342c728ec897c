"""Not (a): the mask takes the losses of the padding out of the sum."""

cause_3 = "a"
