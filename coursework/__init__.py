"""Assignments, their student versions, and a grader whose marks cannot be forged.

python -m coursework.build                          student versions of every assignment
python -m coursework.grade ASSIGNMENT SUBMISSIONS   marks and feedback for a folder of notebooks
"""
