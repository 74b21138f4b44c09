"""One block whose tokens differ by their places: keys and values of every (token, place)."""
