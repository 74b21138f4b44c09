"""Refused networks and ways to train them: the fields, and words of the refusal."""

from typing import Any

from seqcls.config import COUPLED
from tests.zoo import ANSWERED, PICTURES

Row = tuple[dict[str, Any], str]

LAST: dict[str, Any] = {"readout": "last"}
DECODER: dict[str, Any] = {"task": "copy", "architecture": "encoder_decoder"}

TWO_STREAMS = ("encoder_decoder", "recurrent_attention")
MEMORIES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("lstm", {"eigenvalue_range": "signed"}, "eigenvalue_range='signed': not read by"),
    ("mamba", {"positions": "alibi"}, "positions='alibi': not read by"),
    ("mamba", {"readout": "first"}, "use readout='last' or 'mean'"),
    ("deltanet", {"num_attention_heads": 0}, "num_attention_heads=0 with architecture="),
    ("slstm", {"embeddings_init_strategy": "gpt2"}, "embeddings_init_strategy='gpt2' with"),
    ("hybrid", {}, "layers='' with architecture='hybrid'"),
    ("hybrid", {"layers": "gxa"}, "layers='gxa': 'x' is not a mixer; expected letters of a "),
    ("hybrid", {"layers": "ga", "num_blocks": 3}, "num_blocks=3 with layers='ga'"),
    ("hybrid", {"layers": "gd", "positions": "rotary"}, "positions='rotary': not read by"),
    ("hybrid", {"layers": "ga", "positions": "learned"}, "use none, rotary or alibi"),
    ("hybrid", {"layers": "ga", "state_size": 4}, "state_size=4: not read by"),
    ("hybrid", {"layers": "g", "num_attention_heads": 0}, "'g' cannot be a block: num_att"),
    ("hybrid", {"layers": "ga", "readout": "first"}, "use readout='last' or 'mean'"),
)
ARCHITECTURES: tuple[Row, ...] = (
    ({"architecture": "transfomer"}, "architecture='transfomer': did you mean 'transformer'"),
    ({"final_norm": True, "layer_norm_eps": 0.0}, "final_norm=True with layer_norm_eps=0"),
    (
        {"embeddings_init_strategy": "gpt2", "feed_forward_init_strategy": "output_fan_out"},
        "feed_forward_init_strategy='output_fan_out' with embeddings_init_strategy='gpt2'",
    ),
    ({"attention_mask": "causal"}, "readout='first' with attention_mask='causal'"),
    ({"architecture": "lstm"}, "readout='first' with architecture='lstm'"),
    ({"tied_embeddings": True}, "tied_embeddings=True"),
    *(
        ({"architecture": x, "task": "parity"}, "this task asks for one answer of a string")
        for x in TWO_STREAMS
    ),
    *(
        ({"architecture": x, "task": "copy", "loss_on": "all"}, f"='all' with architecture='{x}'")
        for x in TWO_STREAMS
    ),
    ({**DECODER, "attention_mask": "causal"}, "attention_mask='causal': not read by architecture"),
    ({**DECODER, "positions": "rotary", "position_range": 99}, "position_range=99"),
    *(({"task": "parity", **LAST, "architecture": x, **y}, named) for x, y, named in MEMORIES),
    ({"task": "copy", "attention_mask": "full"}, "attention_mask='full'"),
    ({"task": "copy", "architecture": "lstm", "readout": "mean"}, "readout='mean'"),
)

SHIFTED: dict[str, Any] = {"positions": "learned", "position_draw": "shifted"}
TOGETHER: tuple[Row, ...] = (
    ({"task": "sort"}, "task='sort'"),
    ({"task": "addition", "digit_order": "most_first"}, "task='addition'"),
    ({"task": "parity"}, "have no output"),
    ({"task": "copy", "position_range": 100}, "position_range=100"),
)
POSITIONS: tuple[Row, ...] = (
    ({"positions": "rotary"}, "attention_head_size=1: expected an even number"),
    ({"positions": "learned"}, "validation_max_length=50: positions='learned' ends at 10"),
    ({"positions": "alibi", "position_range": 200}, "position_range=200: expected at least 201"),
    ({"positions": "relative", "position_range": 500}, "position_range=500: not read by"),
    ({**SHIFTED, "position_range": 50}, "position_range=50 with position_draw='shifted'"),
    (
        {**SHIFTED, "validation_max_length": 40, "test_max_length": 30},
        "validation_max_length=40: positions='learned' ends at 30",
    ),
    ({"positions": "learnt"}, "positions='learnt': did you mean 'learned'"),
    ({"task": "copy", "positions": "fire", "architecture": "encoder_decoder"}, "positions='fire'"),
    *(({"positions": x, **fields}, named) for x in COUPLED for fields, named in TOGETHER),
)

STAGED: dict[str, Any] = {
    "task": "parity", "readout": "last", "architecture": "lstm", "train_max_length": 12,
    "validation_max_length": 12, "test_max_length": 20,
}  # fmt: skip
STAGES: tuple[Row, ...] = (
    ({"train_lengths": [[8, 0.2], [10, 1.0]]}, "ends at length 10, and train_max_length=12"),
    ({"train_lengths": [[8, 0.2], [12, 0.9]]}, "ends at a share of 0.9"),
    ({"train_lengths": [[8, 0.5], [12, 0.2]]}, "expected shares that rise"),
    ({"train_lengths": [[12, 0.5], [8, 1.0]]}, "expected lengths that rise"),
    ({"train_lengths": [[8.5, 0.5], [12, 1.0]]}, "expected whole numbers from 1 to 10000"),
    ({"train_lengths": [[8, 1.5], [12, 1.0]]}, "expected shares of training above 0, up to 1"),
    *(
        ({"train_lengths": x}, "expected pairs of a longest length and a share")
        for x in ("8 then 12", 12, [8, 12])
    ),
    ({"freeze": [["embedings", 0.2]]}, "expected embeddings, positions, blocks, head or 'block 0'"),
    ({"freeze": [[["head"], 0.2]]}, "not ['head']"),
    ({"freeze": [["block 1", 0.2]]}, "there is no block 1; expected 'block 0' to 0"),
    ({"freeze": [["head", 0.2], ["head", 0.3]]}, "expected each part once"),
    ({"freeze": [["head", 0]]}, "expected shares of training above 0, up to 1.0, not 0"),
    ({"freeze": [["positions", 0.2]]}, "positions='none' has no weights"),
    ({"freeze": [[x, 0.2] for x in ("embeddings", "blocks", "head")]}, "nothing is left to be"),
    ({"train_lengths": [[2, 0.5], [12, 1.0]], "train_min_length": 3}, "max_length=2"),
)

AT_POSITIONS: tuple[Row, ...] = (
    ({"task": "copy"}, "answers='next_symbols': not read by kind 'transduction'"),
    ({"task": "majority"}, "answers='next_symbols' with task='majority'"),
    ({"attention_mask": "full"}, "attention_mask='full'"),
    ({"architecture": "rnn", "readout": "last"}, "readout='last'"),
    ({"architecture": "encoder_decoder"}, "this task asks for answers at every place"),
    ({"answers": "prefixes", "tied_embeddings": True}, "not read by kind 'prefixes'"),
    ({"answers": "states", "pattern": "(a|b)*"}, "expected an automaton of 2 to 4,096 states"),
    ({"test_sampler": "balanced_strings"}, "expected uniform_inputs"),
)

PAGES: tuple[Row, ...] = (
    ({"alphabet": "ab\u2603"}, "has no glyph in font='pillow'"),
    ({"font": "digits", "alphabet": "ab"}, "'a' has no glyph in font='digits'"),
    ({"alphabet": "a/"}, "which ends a line"),
    ({"max_lines": 200, "line_length": 200}, "lower max_lines or line_length"),
    ({"architecture": "encoder_decoder", "picture_channels": 16}, "this task draws pictures"),
    ({"hidden_size": 7}, "use an even number"),
    ({"attention_scale": "log_length"}, "pictures have one size"),
    ({"task": "copy", "line_length": 6, "max_lines": 6, "distortion": 0.0}, "draws none"),
)

NETWORKS: tuple[Row, ...] = (
    *ARCHITECTURES,
    *POSITIONS,
    *(({**STAGED, **fields}, named) for fields, named in STAGES),
    ({"train_sampler": "fixed_length", "train_lengths": [[10, 1.0]]}, "not read by train_sampler"),
    *(
        ({**({} if "task" in x else ANSWERED), "answers": "next_symbols", **x}, y)
        for x, y in AT_POSITIONS
    ),
    *(({**PICTURES, **fields}, named) for fields, named in PAGES),
    ({"check_every": 10}, "check_every=10: not read by"),
)
