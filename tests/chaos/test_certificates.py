"""A thousand certificates, each with one number changed, prove nothing that is wrong."""

from tests.unit.test_proofs import (
    test_a_certificate_with_one_number_changed_proves_nothing_wrong as change_one_number,
)


def test_a_thousand_changed_certificates_prove_nothing_wrong() -> None:
    change_one_number(1_000)
