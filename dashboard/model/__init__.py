"""Page *Model*: why does this one fail?"""
