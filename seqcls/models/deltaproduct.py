"""DeltaProduct: DeltaNet's memory, written to several times with each token."""

from seqcls.config import NetworkConfig
from seqcls.models.deltanet import DeltaNetMixer
from seqcls.models.mixing import Mixing


class DeltaProductMixer(DeltaNetMixer):
    """S_t = S_{t-1} prod_j (I - b_tj k_tj k_tj^T) + sum_j b_tj v_tj k_tj^T prod_{i>j} (I - b_ti
    k_ti k_ti^T), j = 1..n in order: n steps of DeltaNet, each with another key, value and strength,
    and S_t q_t read after the last (Siems et al. 2025, without their optional gates).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config, steps=config.householder_steps)


class DeltaProduct(Mixing):
    """Blocks of DeltaProduct."""

    mixer = DeltaProductMixer
