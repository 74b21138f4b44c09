"""A thousand certificates, each with one number changed, prove nothing that is wrong."""

from tests.unit.test_proofs import try_changes


def test_a_thousand_changed_certificates_prove_nothing_wrong() -> None:
    try_changes(1_000)
