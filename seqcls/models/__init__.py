"""The models that a configuration can name, and whether a network can be as it says.

Each architecture stands in a file: the readable truth, one string a row. No PyTorch is loaded to
know what there is and what fits.
"""

from collections.abc import Mapping
from dataclasses import replace

from seqcls.config import NetworkConfig, RunConfig
from seqcls.declarations import Fields
from seqcls.errors import ConfigError
from seqcls.models.entries import (
    DELTANET,
    DELTAPRODUCT,
    ENCODER_DECODER,
    GATED_DELTANET,
    LINEAR_ATTENTION,
    MAMBA,
    PARAGRAPH_READER,
    RECURRENT_ATTENTION,
    SLSTM,
    TRANSFORMER,
    Compiled,
    Entry,
    Sizes,
    entry_of,
    recurrent,
)
from seqcls.models.positions import POSITIONS, longest_readable, special_tokens
from seqcls.network import (
    DeltaNetFields,
    DeltaProductFields,
    Depth,
    EncoderDecoderFields,
    Heads,
    HybridFields,
    MambaFields,
    MixingHeads,
    PictureReaderFields,
    Pictures,
    Positioned,
    RecurrentAttentionFields,
    RecurrentFields,
    TransformerFields,
)
from seqcls.plugins import Registry


def _no_transformer(config: NetworkConfig) -> str | None:
    causal = "attention_mask='causal'" if config.attention_mask == "causal" else None
    if (reason := _no_head(config, blind=causal)) is not None:
        return reason
    if config.head != "string" and config.attention_mask != "causal":
        left_to_right = "an output is written" if config.writes else "every place is answered"
        return (
            f"attention_mask={config.attention_mask!r}: {left_to_right} from left to right; use "
            "'causal'"
        )
    return _no_blocks(config)


def _no_blocks(config: NetworkConfig) -> str | None:
    if config.writes and config.position_range:
        return (
            f"position_range={config.position_range}: places are drawn for strings of a known "
            "length, and that of an output that is being written is not; leave it out"
        )
    if config.final_norm and not config.has_norms:
        return "final_norm=True with layer_norm_eps=0, which means no norm at all; leave one out"
    if config.embeddings_init_strategy == "gpt2":
        for name in ("attention_init_strategy", "feed_forward_init_strategy"):
            if (value := getattr(config, name)) != "default":
                return (
                    f"{name}={value!r} with embeddings_init_strategy='gpt2', which draws all "
                    "weights; leave one out"
                )
    return None


def _no_encoder_decoder(config: NetworkConfig) -> str | None:
    return _no_streams(config) or _no_blocks(config)


def _no_reader(config: NetworkConfig) -> str | None:
    if not config.picture:
        return (
            "architecture='paragraph_reader': it reads pictures, and this task draws none; use "
            "task='paragraph', or architecture='encoder_decoder'"
        )
    if config.hidden_size % 2:
        return (
            f"hidden_size={config.hidden_size} with architecture='paragraph_reader': half of it "
            "says the row and half the column; use an even number"
        )
    if config.attention_scale != "sqrt":
        return (
            f"attention_scale={config.attention_scale!r} with architecture='paragraph_reader': "
            "pictures have one size; use 'sqrt'"
        )
    return _no_encoder_decoder(config)


def _no_recurrent_attention(config: NetworkConfig) -> str | None:
    if config.picture and config.hidden_size % 2:
        return (
            f"hidden_size={config.hidden_size} with pictures: half of it says the row and half the "
            "column; use an even number"
        )
    return _no_streams(config)


def _no_streams(config: NetworkConfig) -> str | None:
    """Why the two streams of an input and an output cannot be read."""
    if not config.writes:
        asks = "one answer of a string" if config.head == "string" else "answers at every place"
        return (
            f"architecture={config.architecture!r}: it writes outputs, and this task asks for "
            f"{asks}; use 'transformer' or 'lstm'"
        )
    if config.head == "all":
        return (
            f"loss_on='all' with architecture={config.architecture!r}: it reads inputs whole and "
            "predicts none of their tokens; use 'output'"
        )
    return None


def _no_recurrent(config: NetworkConfig) -> str | None:
    return _no_head(config, blind=f"architecture={config.architecture!r}")


def no_mixing(config: NetworkConfig) -> str | None:
    """Why there is no network of blocks that mix tokens from left to right."""
    if (reason := _no_recurrent(config)) is not None:
        return reason
    if config.num_attention_heads == 0 and MODELS[config.architecture].reads >= Heads.reads:
        return (
            f"num_attention_heads=0 with architecture={config.architecture!r}: its memory is in "
            "heads; use 1 or more"
        )
    if config.embeddings_init_strategy == "gpt2":
        return (
            f"embeddings_init_strategy='gpt2' with architecture={config.architecture!r}: it draws "
            "all weights, and what a memory begins with is no weight; use 'default' or "
            "'linear_like'"
        )
    return _no_blocks(config)


def _no_head(config: NetworkConfig, *, blind: str | None) -> str | None:
    """Why a head cannot be as it is said to be.

    Args:
        blind: by which setting `CLS` before a string reads nothing of it; None where it reads all.
    """
    if config.head != "string":
        if config.readout == "first":
            return None
        answer = "an output" if config.writes else "the answer"
        return f"readout={config.readout!r}: {answer} is read at every place; leave it out"
    if config.readout == "first" and blind is not None:
        return (
            f"readout='first' with {blind}: CLS comes first, so it hasn't seen the string yet; "
            "use readout='last' or 'mean'"
        )
    return None


def _recurrent(name: str, gates: int) -> Entry:
    return Entry(
        f"seqcls.models.recurrent:{name}",
        RecurrentFields.reads,
        _no_recurrent,
        several_outputs=True,
        sizes=recurrent(gates),
        compiled="recurrent",
    )


def _mixing(
    letter: str, path: str, sizes: Sizes, fields: type[Fields], compiled: Compiled | None = None
) -> Entry:
    """Blocks of a mixer, which read these fields."""
    return Entry(
        f"{_HERE}.{path}",
        fields.reads,
        no_mixing,
        several_outputs=True,
        sizes=sizes,
        compiled=compiled,
        letter=letter,
    )


IN_SCORES = ("none", "rotary", "alibi")
"""Position schemes that attention among other mixers may have: they are in its scores alone, and
have no parameters."""


def _no_hybrid(config: NetworkConfig) -> str | None:
    letters = architectures_by_letter()
    known = ", ".join(f"{x} ({name})" for x, name in letters.items())
    if not config.layers:
        return (
            "layers='' with architecture='hybrid': expected a letter for each block, such as "
            f"'gga', out of {known}"
        )
    if unknown := [x for x in config.layers if x not in letters]:
        return f"layers={config.layers!r}: {unknown[0]!r} is no mixer; expected letters of {known}"
    for entry, of_block in _blocks(config):
        if (reason := entry.obstacle(of_block)) is not None:
            return f"layers={config.layers!r}: {entry.letter!r} cannot be a block: {reason}"
    if config.positions not in IN_SCORES:
        return (
            f"positions={config.positions!r} with architecture='hybrid': its attention knows "
            f"places by its scores alone; use {', '.join(IN_SCORES[:-1])} or {IN_SCORES[-1]}"
        )
    if config.position_range:
        return (
            f"position_range={config.position_range} with architecture='hybrid': its places are "
            "counted; leave it out"
        )
    # Which blocks need heads they have said.
    return no_mixing(config.model_copy(update={"num_attention_heads": 1}))


def _blocks(config: NetworkConfig) -> list[tuple[Entry, NetworkConfig]]:
    """What stands for each letter of `layers`, and the network of that block alone."""
    found = []
    for letter in config.layers:
        name = architecture_of_letter(letter)
        alone = {"architecture": name, "layers": "", "num_blocks": 1, "attention_mask": "causal"}
        found.append((MODELS[name], config.model_copy(update=alone)))
    return found


def architectures_by_letter() -> dict[str, str]:
    """The architectures of which a block may be one of `hybrid`, by the letter of each; where one
    from outside has a letter of ours, ours.
    """
    found = {MODELS[name].letter: name for name in reversed(MODELS.usable())}
    return {letter: found[letter] for letter in sorted(found) if letter}


def architecture_of_letter(letter: str) -> str:
    """The architecture whose mixer a letter of `layers` stands for, one that there is."""
    # Ours first, so that no package is imported for them.
    own = next((name for name, entry in _OWN.items() if entry.letter == letter), None)
    return own or architectures_by_letter()[letter]


def settings_of(config: RunConfig) -> frozenset[str]:
    """The settings that a network reads: of `hybrid`, those that its blocks read."""
    reads = MODELS[config.architecture].reads
    if config.architecture != "hybrid":
        return reads
    letters = architectures_by_letter()
    of_blocks = [MODELS[letters[x]].reads for x in config.layers if x in letters]
    theirs = frozenset[str]().union(*of_blocks) - {"num_blocks", "attention_mask", "no_attend_cls"}
    return _IN_HYBRIDS | (theirs - {"attention_init_strategy"})


_HERE = "seqcls.models"
_IN_HYBRIDS = HybridFields.reads - Depth.reads
_OF_MEMORIES = (DeltaProductFields.reads | MambaFields.reads) - Depth.reads

_OWN: Mapping[str, Entry] = {
    "transformer": Entry(
        "seqcls.models.transformer:Transformer",
        TransformerFields.reads,
        _no_transformer,
        several_outputs=True,
        sizes=TRANSFORMER,
        compiled="transformer",
        letter="a",
        mixer=f"{_HERE}.attention:AttentionMixer",
    ),
    "encoder_decoder": Entry(
        "seqcls.models.encoder_decoder:EncoderDecoder",
        EncoderDecoderFields.reads,
        _no_encoder_decoder,
        several_outputs=True,
        sizes=ENCODER_DECODER,
    ),
    "paragraph_reader": Entry(
        "seqcls.models.encoder_decoder:ParagraphReader",
        PictureReaderFields.reads,
        _no_reader,
        several_outputs=True,
        sizes=PARAGRAPH_READER,
    ),
    "recurrent_attention": Entry(
        "seqcls.models.recurrent_attention:RecurrentAttention",
        RecurrentAttentionFields.reads,
        _no_recurrent_attention,
        several_outputs=True,
        sizes=RECURRENT_ATTENTION,
    ),
    "rnn": _recurrent("RNN", gates=1),
    "gru": _recurrent("GRU", gates=3),
    "lstm": replace(_recurrent("LSTM", gates=4), letter="r", mixer=f"{_HERE}.lstm_mixer:LSTMMixer"),
    "deltanet": _mixing("d", "deltanet:DeltaNet", DELTANET, DeltaNetFields, compiled="transformer"),
    "gated_deltanet": _mixing(
        "g", "gated_deltanet:GatedDeltaNet", GATED_DELTANET, DeltaNetFields, compiled="transformer"
    ),
    "deltaproduct": _mixing("p", "deltaproduct:DeltaProduct", DELTAPRODUCT, DeltaProductFields),
    "mamba": _mixing(
        "m",
        "mamba:Mamba",
        MAMBA,
        MambaFields,
        compiled="transformer",
    ),
    "slstm": _mixing("s", "slstm:SLSTM", SLSTM, MixingHeads),
    "linear_attention": _mixing("l", "mixing:LinearAttention", LINEAR_ATTENTION, MixingHeads),
    "hybrid": Entry(
        "seqcls.models.hybrid:Hybrid",
        _IN_HYBRIDS | Positioned.reads | _OF_MEMORIES,
        _no_hybrid,
        several_outputs=True,
        sizes=Sizes(
            parameters=lambda config: sum(x.sizes.parameters(y) for x, y in _blocks(config)),
            products=lambda config, tokens: (
                sum(x.sizes.products(y, tokens) for x, y in _blocks(config)) / len(config.layers)
            ),
            scores=lambda config, tokens: sum(
                x.sizes.scores(y, tokens) for x, y in _blocks(config)
            ),
        ),
        compiled="transformer",
    ),
}

MODELS: Registry[Entry] = Registry("seqcls.models", _OWN, entry_of)


def compiled_program(config: NetworkConfig) -> Compiled | None:
    """The program by which the compiled engines train such a network; None where they have none."""
    return MODELS[config.architecture].compiled if config.architecture in MODELS else None


def check_network(config: NetworkConfig, longest: Mapping[str, int]) -> None:
    """Refuses a network that cannot be, or that cannot read what it must.

    Args:
        longest: tokens of the longest string of `train`, `validation` and `test`.

    Raises:
        ConfigError: settings that the architecture or the positions cannot have.
    """
    parts = ((MODELS, config.architecture), (POSITIONS, config.positions))
    for registry, name in parts:
        with registry.wrap_errors(name):
            obstacle = registry[name].obstacle(config)
        if obstacle is not None:
            raise ConfigError(obstacle)
    if config.picture and not MODELS[config.architecture].reads >= Pictures.reads:
        raise ConfigError(
            f"architecture={config.architecture!r}: it reads tokens, and this task draws pictures; "
            "use 'paragraph_reader' or 'recurrent_attention'"
        )
    asked = "at every place" if config.head == "places" else f"for {config.num_outputs}"
    several = config.num_outputs > 1 or config.head == "places"
    if several and not MODELS[config.architecture].several_outputs:
        raise ConfigError(
            f"architecture={config.architecture!r}: it answers with one number, and this task asks "
            f"{asked}"
        )
    end = longest_readable(config)
    for part, length in longest.items():
        if end is None or length <= end:
            continue
        if config.position_range:
            raise ConfigError(
                f"position_range={config.position_range}: expected at least "
                f"{length + special_tokens(config)}, the tokens that are read of the longest "
                f"{part} string"
            )
        # In testing those strings are not asked about, and their lengths have no number.
        if part != "test":
            known = "trained on or tested" if config.tested_length else "trained on"
            raise ConfigError(
                f"{part}_max_length={length}: positions={config.positions!r} ends at {end}, the "
                f"longest string {known}; lower {part}_max_length to it"
            )
