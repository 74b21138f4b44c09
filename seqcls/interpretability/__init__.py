"""Why a trained model answers as it does: a file or a folder for each question.

Where letter counts decide, `by_counts` answers exactly, from the model as `model.network` has it;
`by_strings` runs strings, of any model. Pure functions: no database and no screen.
"""
