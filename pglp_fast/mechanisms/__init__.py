"""Mechanisms: each answers one question, ln Pr(z|s) over a component.

``contract`` says what a mechanism is, ``registry`` lists those that have a name. Nothing is
imported here: the command line reads the names without a compiler."""
