"""Settings of training that no compiled engine has."""

from seqcls.problem import Problem


def training_left_out(problem: Problem) -> str | None:
    """Why none trains so; None where one may."""
    if steps := problem.config.warm_up_steps:
        return f"warm_up_steps={steps} is not compiled"
    return None
