"""Not four of them: float32 can hold e^−80, about 10⁻³⁵."""

number_5 = 4
