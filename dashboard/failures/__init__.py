"""Why do models fail, and what helps?"""
