"""Not (a): `shrink` corrects the total and the mixture."""

cause_5 = "a"
