"""The languages to learn, one a file. A new one is a file and a line here."""

from seqcls.tasks.contains_all import ContainsAll

TASKS = {"contains_all": ContainsAll}
