"""Not (b): the scores come scaled, and a scale is no cure for low scores."""

cause_5 = "b"
