"""Analyses of a trained model's answers: a file for each question.

Where letter counts decide, answers are exact, from the model as `network` has it; any other
model is run on strings (`readable_model`). Pure functions: no database and no screen.
"""
