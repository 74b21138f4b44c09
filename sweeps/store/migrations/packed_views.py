"""Packed errors and outputs as rows, in plain SQL: anyone's `sqlite3` or `psql` can read them.

A logit is taken apart as IEEE 754 says: a sign, an exponent and a fraction, of which the last two
have 8 and 23 bits in single precision, 11 and 52 in double.
"""

_MISCLASSIFIED = """
CREATE VIEW misclassified AS
SELECT wrong.run_id, said.string, said.length, said.label, wrong.logit, said.occurrences,
    said.target
FROM string_error AS wrong
JOIN run ON run.id = wrong.run_id
JOIN config ON config.id = run.config_id
JOIN test_string AS said
    ON said.test_set_id = config.test_set_id AND said.number = wrong.number
"""

_STRING_ERROR = """
CREATE VIEW string_error AS
{errors}"""

_WRONG_OUTPUT = """
CREATE VIEW wrong_output AS
SELECT wrong.run_id, said.string, said.length, said.target, {output} AS output,
    {first_wrong} AS first_wrong, wrong.logit AS log_probability, {error_kind} AS error_kind,
    said.occurrences
FROM ({errors}) AS wrong
JOIN run ON run.id = wrong.run_id
JOIN config ON config.id = run.config_id
{join} test_string AS said
    ON said.test_set_id = config.test_set_id AND said.number = wrong.number
"""

_ERRORS = """SELECT run_id, number, {kept}(1 - 2 * sign) * {size} AS logit
FROM (
    SELECT run_id, number, {kept}high >> 31 AS sign,
        CASE width WHEN 4 THEN ((high >> 23) & 255) - 127
            ELSE ((high >> 20) & 2047) - 1023 END AS exponent,
        CASE width WHEN 4 THEN -127 ELSE -1023 END AS least,
        CASE width WHEN 4 THEN (high & 8388607) / 8388608.0{exact}
            ELSE (((high & 1048575) << 32) | low) / 4503599627370496.0{exact} END AS fraction
    FROM ({bits}) AS bits
) AS parts
"""

# The least exponent is that of zero, and of numbers too small for a leading one; the greatest that
# of infinity and NaN.
_SIZE = (
    "CASE exponent WHEN least THEN fraction * {smallest}{infinite} "
    "ELSE (1.0 + fraction) * {power} END"
)

_INFINITE = " WHEN 1 - least THEN CASE WHEN fraction = 0 THEN {} END"

# A test set's own numbers serve to count: a run has no more errors than there are strings. Outputs
# are counted already.
_SQLITE_BITS = """
    SELECT run_id, {number} AS number, {kept}{high} AS high, {low} AS low, width
    FROM (
        SELECT pack.run_id AS run_id,{placed}
            length(pack.logits) * 3 / length(pack.numbers) AS width,
            hex(substr(pack.numbers, 1 + 3 * {place}, 3)) AS numbers,
            hex(substr(pack.logits,
                1 + length(pack.logits) * 3 / length(pack.numbers) * {place}, 8)) AS logits
        FROM error_pack AS pack{places}
            AND {place} < length(pack.numbers) / 3
    ) AS texts
"""

_SQLITE_STRINGS = """
        JOIN run ON run.id = pack.run_id
        JOIN config ON config.id = run.config_id
        JOIN test_string AS place ON place.test_set_id = config.test_set_id"""

_SQLITE_OUTPUTS = """
        JOIN output_pack ON output_pack.run_id = pack.run_id
        JOIN json_each(output_pack.outputs) AS place ON true"""

_POSTGRES_BITS = """
    SELECT pack.run_id AS run_id, width,
        get_byte(pack.numbers, 3 * place) * 65536 + get_byte(pack.numbers, 3 * place + 1) * 256
            + get_byte(pack.numbers, 3 * place + 2) AS number,{placed}
        {high} AS high, {low} AS low
    FROM error_pack AS pack
    CROSS JOIN LATERAL (SELECT length(pack.logits) * 3 / length(pack.numbers) AS width) AS wide
    {places}
"""

_POSTGRES_STRINGS = "CROSS JOIN LATERAL generate_series(0, length(pack.numbers) / 3 - 1) AS place"

_POSTGRES_OUTPUTS = """JOIN output_pack ON output_pack.run_id = pack.run_id
    CROSS JOIN LATERAL json_array_elements(output_pack.outputs::json)
        WITH ORDINALITY AS entry (output, following)
    JOIN LATERAL (SELECT following::integer - 1 AS place) AS before
        ON place < length(pack.numbers) / 3"""


def views(dialect: str, *, finite_alone: bool) -> dict[str, str]:
    """What makes the views, by name, those first that others read.

    Args:
        dialect: `sqlite` or `postgresql`.
        finite_alone: as the schema 0004 has them, which takes NaN and infinity for numbers.
    """
    if dialect == "sqlite":
        spelled = "" if finite_alone else _INFINITE.format("9e999")
        errors = _sqlite_errors("place.number", _SQLITE_STRINGS, spelled)
        placed = " place.value AS output,"
        kept = _sqlite_errors("place.key", _SQLITE_OUTPUTS, spelled, "output, ", placed)
        parts = [f"json_extract(wrong.output, '$[{part}]')" for part in range(3)]
        # Else SQLite may read all outputs again for each string of the test set.
        join = "CROSS JOIN"
    else:
        spelled = "" if finite_alone else _INFINITE.format("'Infinity'::double precision")
        errors = _postgres_errors(_POSTGRES_STRINGS, spelled)
        kept = _postgres_errors(_POSTGRES_OUTPUTS, spelled, "output, ", " output,")
        parts = ["wrong.output ->> 0", "(wrong.output ->> 1)::integer", "wrong.output ->> 2"]
        join = "JOIN"
    names = dict(zip(("output", "first_wrong", "error_kind"), parts, strict=True))
    return {
        "string_error": _STRING_ERROR.format(errors=errors),
        "misclassified": _MISCLASSIFIED,
        "wrong_output": _WRONG_OUTPUT.format(errors=kept, join=join, **names),
    }


def _sqlite_errors(place: str, places: str, infinite: str, kept: str = "", placed: str = "") -> str:
    """Each error as a row of run_id, number, what is kept of its place, and logit."""
    bits = _SQLITE_BITS.format(
        number=_of_digits("numbers", 1, 6),
        high=_of_digits("logits", 1, 8),
        low=_of_digits("logits", 9, 8),
        place=place,
        places=places,
        kept=kept,
        placed=placed,
    )
    smallest = "CASE least WHEN -127 THEN {} ELSE {} END".format(*map(_power, ("-126", "-1022")))
    size = _SIZE.format(smallest=smallest, infinite=infinite, power=_power("exponent"))
    return _ERRORS.format(size=size, bits=bits, kept=kept, exact="")


def _postgres_errors(places: str, infinite: str, kept: str = "", placed: str = "") -> str:
    """Each error as a row, like `_sqlite_errors`."""
    four = "('x' || encode(substring(pack.logits FROM place * width + {} FOR 4), 'hex'))"
    high, low = (f"{four.format(start)}::bit(32)::bigint & 4294967295" for start in (1, 5))
    bits = _POSTGRES_BITS.format(high=high, low=low, places=places, placed=placed)
    two = "power(2::double precision, {})"
    smallest, power = two.format("least + 1"), two.format("exponent")
    size = _SIZE.format(smallest=smallest, infinite=infinite, power=power)
    # A quotient of numerics is rounded to fewer digits than a double has.
    exact = "::double precision" if infinite else ""
    return _ERRORS.format(size=size, bits=bits, kept=kept, exact=exact)


def _power(exponent: str) -> str:
    """Two to the power of an expression: not every SQLite has the function."""
    # As products: SQLite reads numbers of more digits with rounding.
    factors = ["2.0", "4.0", "16.0", "256.0", "65536.0", "4294967296.0"]
    factors += [" * ".join(["4294967296.0"] * count) for count in (2, 4, 8, 16)]
    product = " * ".join(
        f"CASE WHEN abs({exponent}) & {1 << bit} THEN {factor} ELSE 1.0 END"
        for bit, factor in enumerate(factors)
    )
    return f"CASE WHEN {exponent} < 0 THEN 1.0 / ({product}) ELSE {product} END"


def _of_digits(text: str, first: int, count: int) -> str:
    """The number that some hexadecimal digits of a column of text mean."""
    digits = [
        f"(instr('123456789ABCDEF', substr({text}, {first + place}, 1)) "
        f"<< {4 * (count - 1 - place)})"
        for place in range(count)
    ]
    return f"({' + '.join(digits)})"
