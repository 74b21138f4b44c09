"""Training loads none of PyTorch's compiler."""

import subprocess
import sys


def test_training_with_pytorch_loads_no_compiler() -> None:
    """It would take as long again as all of PyTorch, in every process that trains."""
    program = (
        "import sys\n"
        "from seqcls.problem import configuration, resolve\n"
        "from seqcls.training import train_group\n"
        "sizes = dict(train_size=8, validation_size=4, max_num_epochs=1, min_num_epochs=1)\n"
        "problem = resolve(configuration({'task': 'parity', **sizes}))\n"
        "for engine in ('strings', 'counts'):\n"
        "    assert train_group([(problem, 0)], engine=engine)[0].failure is None\n"
        "assert 'torch' in sys.modules\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
