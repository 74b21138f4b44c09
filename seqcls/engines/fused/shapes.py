"""The sizes and switches of a network, as the compiled code takes them."""

from seqcls.config import NetworkConfig
from seqcls.engines.fused.buffers import NORMS, Shape
from seqcls.engines.fused.learned import learned_places
from seqcls.problem import Problem


def training_shape(problem: Problem) -> Shape:
    """The sizes and switches of a network in training."""
    scaled_loss = problem.config.train_loss == "sigmoid_scaled"
    return shape_of(problem.network, scaled_loss=scaled_loss)


def shape_of(config: NetworkConfig, *, scaled_loss: bool = False) -> Shape:
    """The sizes and switches of a network."""
    places, per_place = learned_places(config)
    return Shape(
        token_types=config.num_letters + 1,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        head_size=config.attention_head_size,
        feed_forward=config.feed_forward_size,
        first_type=int(config.no_attend_cls or config.readout == "mean"),
        norm=NORMS[config.layer_norm if config.has_norms else "none"],
        eps=config.layer_norm_eps,
        scaled_loss=scaled_loss,
        log_length=config.attention_scale == "log_length",
        relu=config.activation == "relu",
        biases=config.biases,
        places=places,
        per_place=per_place,
    )


def integers(config: NetworkConfig) -> str:
    """The type of whole numbers that are as wide as the network's numbers."""
    return config.precision.replace("float", "int")
