"""Tab *Limits*: from where on a model is wrong, and what is known of every string."""

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import page
from dashboard.model import family_sections
from dashboard.model import limits_sections as sections
from dashboard.model import limits_words as words
from dashboard.model.opened import Opened
from dashboard.section import Section
from dashboard.words.sentences import say
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.domains import obstacle
from seqcls.interpretability.verdicts import unaffordable
from seqcls.proofs.cells import why_not_proved
from seqcls.questions import RunModel
from seqcls.tasks.automaton import language_automaton
from sweeps.api import open_reader, proving

if TYPE_CHECKING:
    from seqcls.proofs.prover import Proof


def show(opened: Opened) -> None:
    """Draws the tab."""
    _show_family(opened)
    # What is right outside of a file nobody knows, and so not what is wrong.
    if opened.problem.unknown_labels is None:
        _render(opened, opened.ask(sections.shortest), "shortest")
        _show_every(opened)
        _show_beyond(opened)
    problem = opened.problem
    # A proof follows the network and the language's automaton side by side.
    if why_not_proved(problem) is None and language_automaton(problem.task) is not None:
        _show_proof(opened)


def _render(opened: Opened, section: Section, name: str, *, heading: bool = True) -> None:
    """A section, of whose strings a click looks into one."""
    key = f"{name} {opened.run} {opened.epoch}"
    clicked = page.render(section, key, heading=heading, across=2)
    if isinstance(clicked, str) and clicked != opened.string:
        page.to_model(opened.run, string=clicked, view="Why")


def _show_family(opened: Opened) -> None:
    typed = st.text_input(
        "Family of strings",
        _first_family(opened),
        key="family",
        bind="query-params",
        help=words.FAMILY_HELP,
    )
    try:
        _render(opened, opened.ask(family_sections.family, typed.strip()), f"family {typed}")
    except (InvalidStringError, ConfigError) as error:
        st.error(page.plain(str(error)))


def _first_family(opened: Opened) -> str:
    """The family through the bar's string, or what is left of it; else the first letter's."""
    try:
        return opened.ask(family_sections.usual_family, opened.string)
    except (InvalidStringError, ConfigError):
        return f"{opened.problem.task.alphabet[0]}{{n}}"


def _show_every(opened: Opened) -> None:
    """Shows the results on all strings; on request where they take seconds."""
    st.header(words.EVERY, anchor=False)
    if unaffordable(opened.problem) is None:
        letters = _choose_letters(opened)
        section = opened.ask(sections.every_multiset, letters)
        _render(opened, section, f"every {letters}", heading=False)
    elif st.toggle("Try every string", key="every_input", bind="query-params"):
        _render(opened, opened.ask(sections.every_string), "every", heading=False)
    else:
        st.caption(page.plain(say("how_tried")))


def _choose_letters(opened: Opened) -> tuple[int, int] | None:
    """The two letters on the axes of the map, at first those that errors hold most of; None where
    there is nothing to choose.
    """
    likeliest, alphabet = opened.ask(sections.likeliest_letters), opened.problem.task.alphabet
    pairs = {
        f"{alphabet[x]} and {alphabet[y]}": (x, y) for y in range(len(alphabet)) for x in range(y)
    }
    if likeliest is None or len(pairs) < 2:
        return None
    first = next(name for name, pair in pairs.items() if pair == likeliest)
    chosen = st.segmented_control(
        "Letters of the map",
        list(pairs),
        default=first,
        required=True,
        format_func=page.plain,
        key="letters",
        bind="query-params",
        help="At first those that wrong strings hold most of.",
    )
    return pairs[chosen or first]


def _show_beyond(opened: Opened) -> None:
    """Certificates by letter counts, of models that these decide."""
    if obstacle(opened.problem, "labels") is not None:
        return
    if (reason := obstacle(opened.problem)) is not None:
        st.header(words.LONGER, anchor=False)
        st.caption(page.plain(say("not_beyond", reason=reason)))
        return
    _render(opened, opened.ask(sections.beyond), "beyond")


def _prove(model: RunModel, epoch: int) -> "Proof":
    return proving.prove(open_reader(), model, epoch)


def _stored_proof(model: RunModel, epoch: int) -> "Proof | None":
    return proving.stored_proof(open_reader(), model, epoch)


def _show_proof(opened: Opened) -> None:
    """Shows the stored proof; else proves on request, which takes up to a minute."""
    st.header(words.IS_PROVED, anchor=False)
    proof = opened.ask(_stored_proof, opened.epoch)
    if proof is None:
        st.caption(page.plain(say("how_proved")))
        if not st.toggle("Prove it", key="every_string", bind="query-params"):
            return
        proof = opened.ask(_prove, opened.epoch)
    _render(opened, opened.ask(sections.proof, proof), "proof", heading=False)
    if proof.certificate is not None:
        from seqcls.proofs.certificate import to_text

        text = to_text(proof.certificate)
        st.download_button("Certificate", text, "proof.json", "application/json", on_click="ignore")
