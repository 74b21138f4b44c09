"""The tasks to learn: languages and transductions. A new one is a file and a line here."""

from seqcls.plugins import Registry
from seqcls.tasks.base import CountTask, InputTask, LanguageTask, Task
from seqcls.tasks.by_counts.contains_all import ContainsAll
from seqcls.tasks.by_counts.counting import Counting
from seqcls.tasks.by_counts.majority import Majority
from seqcls.tasks.by_counts.parity import Parity
from seqcls.tasks.dyck import Dyck
from seqcls.tasks.files.file import File
from seqcls.tasks.files.pairs import Pairs
from seqcls.tasks.finite_state.cycle_navigation import CycleNavigation
from seqcls.tasks.finite_state.even_pairs import EvenPairs
from seqcls.tasks.finite_state.first import First
from seqcls.tasks.finite_state.modular_arithmetic import ModularArithmetic
from seqcls.tasks.finite_state.regular import Regular
from seqcls.tasks.finite_state.repeat_01 import Repeat01
from seqcls.tasks.finite_state.word_problem import WordProblem
from seqcls.tasks.marked.binary import BinaryAddition, BinaryMultiplication, ComputeSqrt
from seqcls.tasks.marked.rearranged import BucketSort, MarkedCopy, MarkedReversal, OddsFirst
from seqcls.tasks.marked.stack_manipulation import StackManipulation
from seqcls.tasks.missing_duplicate import MissingDuplicate
from seqcls.tasks.transductions.copying import Copy, Duplicate, Reverse, Sort, WriteOddsFirst
from seqcls.tasks.transductions.frequency import (
    BinaryMajority,
    InterleavedMajority,
    MostFrequent,
    ParityWord,
)
from seqcls.tasks.transductions.modular import WritePlace, WriteValue
from seqcls.tasks.transductions.numbers import Addition, ModularSum, Multiplication, SquareRoot
from seqcls.tasks.transductions.paragraph import Paragraph
from seqcls.tasks.transductions.products import WriteProducts
from seqcls.tasks.transductions.rewriting import Rewrite
from seqcls.tasks.transductions.stack import WriteStack
from seqcls.tasks.unmarked_reversal import UnmarkedReversal

_OWN: dict[str, type[Task]] = {
    "contains_all": ContainsAll,
    "counting": Counting,
    "regular": Regular,
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
    "file": File,
    "pairs": Pairs,
    "paragraph": Paragraph,
}

TASKS: Registry[type[Task]] = Registry("seqcls.tasks", _OWN)

__all__ = ["TASKS", "CountTask", "InputTask", "LanguageTask", "Task"]
