"""Not (d): the sums are divided by the lengths."""

cause_3 = "d"
