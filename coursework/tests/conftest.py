"""The course under test is this one."""

from pathlib import Path

import torch

from walled_grader import course

course.use(Path(__file__).parents[1])
torch.set_num_threads(1)
