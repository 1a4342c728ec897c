"""Not (b): entry n − 1 belongs to the distance 0, and it gets it."""

cause_2 = "b"
