"""One model looked into: its states, its circuits, why it fails, where it breaks, what it needs.

    obstacle(config)                            why what follows would not be true of a model
    network = Network.of(config, weights)       a model as a function of letter counts, in float64
    activations(network, strings)               every state, by name
    direct_logit_attribution(network, string)   what each part adds to the logit
    circuits(network)                           key-query and value-output circuit of each head
    letter_orders(network, string)              does the order of the letters matter?
    explain(network, string)                    the cause, as data
    explanation_text(explain(network, string))  and in words
    errors_up_to(network, max_length)           where the misclassified multisets lie
    certify(network)                            what can be proved for all longer strings
    CountedJudge(network)                       what is left without heads and dimensions

Pure functions of a configuration and weights: no database, no screen, and no PyTorch but in
`letter_orders`.
"""
