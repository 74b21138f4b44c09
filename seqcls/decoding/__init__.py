"""Writing outputs: token by token, each from the input and the tokens before it."""
