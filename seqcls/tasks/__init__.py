"""The tasks to learn: languages and transductions. A new one is a class and a line here."""

from seqcls.plugins import Registry
from seqcls.tasks.base import CountTask, InputTask, LanguageTask, Task
from seqcls.tasks.counting import Counting
from seqcls.tasks.dyck import Dyck
from seqcls.tasks.files import File, FromAutomaton, Pairs
from seqcls.tasks.finite_state import EvenPairs, First, Repeat01
from seqcls.tasks.flip_flop import FlipFlop, WriteFlipFlop
from seqcls.tasks.frequency import BinaryMajority, InterleavedMajority, MostFrequent, ParityWord
from seqcls.tasks.groups import WordProblem, WriteProducts
from seqcls.tasks.letter_counts import ContainsAll, Majority, Parity
from seqcls.tasks.memory import AssociativeRecall, ConsistentPairs, Retrieval, SelectiveCopy
from seqcls.tasks.modular import CycleNavigation, ModularArithmetic, WritePlace, WriteValue
from seqcls.tasks.numbers import (
    Addition,
    BinaryAddition,
    BinaryMultiplication,
    ComputeSqrt,
    ModularSum,
    Multiplication,
    SquareRoot,
)
from seqcls.tasks.paragraph import Paragraph
from seqcls.tasks.rearranging import (
    BucketSort,
    Copy,
    Duplicate,
    MarkedCopy,
    MarkedReversal,
    MissingDuplicate,
    OddsFirst,
    Reverse,
    Sort,
    UnmarkedReversal,
    WriteOddsFirst,
)
from seqcls.tasks.regular import Regular
from seqcls.tasks.rewriting import Rewrite
from seqcls.tasks.stack import StackManipulation, WriteStack
from seqcls.tasks.subregular import RandomSubregular

_OWN: dict[str, type[Task]] = {
    "contains_all": ContainsAll,
    "counting": Counting,
    "regular": Regular,
    "automaton": FromAutomaton,
    "subregular": RandomSubregular,
    "even_pairs": EvenPairs,
    "repeat_01": Repeat01,
    "parity": Parity,
    "first": First,
    "majority": Majority,
    "cycle_navigation": CycleNavigation,
    "modular_arithmetic": ModularArithmetic,
    "word_problem": WordProblem,
    "dyck": Dyck,
    "stack_manipulation": StackManipulation,
    "marked_reversal": MarkedReversal,
    "unmarked_reversal": UnmarkedReversal,
    "marked_copy": MarkedCopy,
    "missing_duplicate": MissingDuplicate,
    "odds_first": OddsFirst,
    "bucket_sort": BucketSort,
    "binary_addition": BinaryAddition,
    "binary_multiplication": BinaryMultiplication,
    "compute_sqrt": ComputeSqrt,
    "flip_flop": FlipFlop,
    "consistent_pairs": ConsistentPairs,
    "copy": Copy,
    "reverse": Reverse,
    "duplicate": Duplicate,
    "sort": Sort,
    "write_odds_first": WriteOddsFirst,
    "write_stack": WriteStack,
    "write_place": WritePlace,
    "write_value": WriteValue,
    "write_products": WriteProducts,
    "most_frequent": MostFrequent,
    "binary_majority": BinaryMajority,
    "interleaved_majority": InterleavedMajority,
    "parity_word": ParityWord,
    "addition": Addition,
    "multiplication": Multiplication,
    "square_root": SquareRoot,
    "modular_sum": ModularSum,
    "rewrite": Rewrite,
    "associative_recall": AssociativeRecall,
    "write_flip_flop": WriteFlipFlop,
    "selective_copy": SelectiveCopy,
    "retrieval": Retrieval,
    "file": File,
    "pairs": Pairs,
    "paragraph": Paragraph,
}

TASKS: Registry[type[Task]] = Registry("seqcls.tasks", _OWN)

__all__ = ["TASKS", "CountTask", "InputTask", "LanguageTask", "Task"]
