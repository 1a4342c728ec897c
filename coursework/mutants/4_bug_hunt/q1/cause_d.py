"""Not (d): a score equal to the threshold is not below it, so it stays."""

cause_1 = "d"
