"""Assignments, their student versions, and the grader that marks what is handed in.

python -m coursework.build                           student versions of every assignment
python -m coursework.exports                         the question bank for Moodle and Canvas
python -m coursework.grader ASSIGNMENT SUBMISSIONS   marks and feedback for a folder of notebooks
"""
