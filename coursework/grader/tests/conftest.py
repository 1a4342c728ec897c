"""The course that the tests mark is the one beside the grader."""

from pathlib import Path

import torch

from walled_grader import course

course.use(Path(__file__).parents[2])
# On tensors of a few numbers threads only wait for each other, and pytest runs in parallel.
torch.set_num_threads(1)
