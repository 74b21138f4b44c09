"""Which configurations generalize, and where does failing begin?"""
