"""Not (d): a shorter tile is summed like any other."""

cause_5 = "d"
