"""Not (a): the largest scores come first, as they should."""

cause_1 = "a"
