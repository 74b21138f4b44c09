"""The architectures: a function for each emits its instructions, forward only.

Numba is not loaded.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.parameters import Parameters
from seqcls.engines.lanes import mixing
from seqcls.engines.lanes.layers import (
    CELLS,
    GATES,
    INPUT,
    READ,
    START,
    STEPS,
    SUM,
    TARGETS,
    TOKENS,
    Program,
    Stream,
)
from seqcls.engines.lanes.parameters import Axis
from seqcls.engines.lanes.parts import Mixer, Model
from seqcls.engines.lanes.tape import ANSWERING, Value
from seqcls.models import MODELS

Parts = tuple[Value, Stream, Stream | None]
"""A network's outputs, and its streams."""


def blocks(model: Model) -> Parts:
    """Emits Transformers, and blocks of mixers that read from left to right."""
    config, is_transformer = model.config, model.config.architecture == "transformer"
    mask = config.attention_mask if is_transformer else "causal"
    types, stream = model.stream(TOKENS, mask, config.no_attend_cls and is_transformer)
    x, letters = model.embed(types, stream), letters_of(config)
    for number, letter in enumerate(letters):
        name = f"blocks.{number}."
        # Of the last block only one token of each string is needed; zeros for an empty string.
        is_last = number == len(letters) - 1
        single = is_last and config.head == "string" and config.readout in ("first", "last")
        inside, norm = name + "mixer", "mixer_norm"
        if is_transformer:
            inside, norm = name + "attention", "attention_norm"
        elif letter == "a":
            inside += ".attention"
        attention = partial(model.attention, inside, stream, single=single)
        mixers: Mapping[str, Mixer] = {
            "a": partial(attention, causal=mask == "causal"),
            "l": partial(attention, causal=True, shares=SUM, biases=False),
            "d": partial(model.memory, inside, single=single, fades=False),
            "g": partial(model.memory, inside, single=single, fades=True),
            "p": partial(
                model.memory, inside, single=single, fades=False, steps=config.householder_steps
            ),
            "m": partial(model.selective, inside, single=single),
            "s": partial(model.slstm, inside, single=single),
            "r": partial(model.cell, inside, single=single),
        }
        x = model.block(name, [norm], x, [mixers[letter]], single)
    return model.head(x, stream), stream, None


def letters_of(config: NetworkConfig) -> str:
    """Returns the letter of each block's mixer, as in the field `layers`."""
    if config.architecture == "hybrid":
        return config.layers
    return MODELS[config.architecture].letter * config.num_blocks


def recurrent(model: Model) -> Parts:
    """Emits recurrent layers."""
    config, tape, parameters = model.config, model.tape, model.parameters
    types, stream = model.stream(TOKENS, "causal", False)
    gates = Axis.parts(GATES[config.architecture], config.hidden_size)
    cell, x = CELLS[config.architecture], types
    for number in range(config.num_blocks):
        name, biases = f"layers.{number}.", config.biases
        layer = model.linear([name + "input_"], gates, has_bias=biases)
        state = model.linear([name + "state_"], gates, has_bias=biases)
        if x is types:
            layer = tape.table(types, parameters, layer, model.embedding)
        x = mixing.recur(tape, x, layer, cell, 1, model.hidden.size, state.weight, state.bias)
    return model.head(x, stream), stream, None


def encoder_decoder(model: Model) -> Parts:
    """Emits an encoder of the input and a decoder of the output, which attends to the encoding."""
    config, tape = model.config, model.tape
    model.take_positions("encoder.")
    types, inputs = model.stream(INPUT, "full", config.no_attend_cls)
    x = model.embed(types, inputs)
    for number in range(config.num_blocks):
        name = f"encoder.blocks.{number}."
        own = partial(model.attention, name + "attention", inputs)
        x = model.block(name, ["attention_norm"], x, [own], False)
    encoded = tape.norm(x, model.final_norm("encoder."))
    model.take_positions("decoder.")
    types, outputs = model.stream(TOKENS, "causal", False)
    x = model.embed(types, outputs)
    for number in range(config.num_blocks):
        name = f"decoder.blocks.{number}."
        own = partial(model.attention, name + "attention", outputs, causal=True)
        others = encoded, inputs
        cross = partial(model.attention, name + "cross_attention", outputs, others=others)
        x = model.block(name, ["attention_norm", "cross_attention_norm"], x, [own, cross], False)
    last = tape.norm(x, model.final_norm("decoder."))
    return model.read(tape.targets(last)), outputs, inputs


PROGRAMS: Mapping[str, Callable[[Model], Parts]] = {
    "rnn": recurrent,
    "gru": recurrent,
    "lstm": recurrent,
    "encoder_decoder": encoder_decoder,
}


@lru_cache(maxsize=64)
def program_of(
    config: NetworkConfig, rows: int, input_rows: int, groups: int, use: int
) -> tuple[Program, Parameters]:
    """Returns a network's instructions and parameters.

    Args:
        rows: the number of rows of all tokens of the groups; `input_rows` those of the other
            stream.
        use: `TRAINING`, `ANSWERING` or `WRITING`.
    """
    steps = config.householder_steps if "p" in letters_of(config) else 1
    spans = {
        READ: groups, TOKENS: rows, TARGETS: rows, INPUT: input_rows, START: 1, STEPS: rows * steps
    }  # fmt: skip
    model = Model(config, spans, use)
    outputs, own, inputs = PROGRAMS.get(config.architecture, blocks)(model)
    outputs.gradient = outputs  # The losses replace the outputs by their gradients.
    forward, backward = model.tape.finish()
    first, apart = model.tape.address(outputs)
    program = Program(
        forward=forward,
        backward=backward,
        together=model.tape.together,
        own=own,
        inputs=inputs or own,
        read_factor=model.read_factor,
        read_turns=model.read_turns,
        crossing=model.crossing,
        share=model.share,
        outputs=first,
        outputs_apart=apart,
        rows=rows,
        steps=steps,
        size=model.tape.size,
    )
    return program, model.parameters


def parameters_of(config: NetworkConfig) -> Parameters:
    """Returns a network's parameters."""
    # Their layout depends on the network alone, not on these sizes.
    return program_of(config, 4, 4, 1, ANSWERING)[1]
