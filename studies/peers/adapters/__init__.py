"""One module for each library: what the worker calls to prepare data, to fit and to answer.

The interpreter of the library's own environment imports them, so they use NumPy, the library and
what that depends on, and nothing else.  Each says in ``PACKAGES`` which versions to report.  An
adapter is made with ``threads`` and the method's options.  It has ``prepare(**arrays)``, to build
the library's own form of the training data, ``fit()``, and ``answer(**arrays)``, which returns
arrays by name.  It may have ``describe(**arrays)``, to keep what is known of users and items beside
their ratings, and ``also(**arrays)``: further answers that are not charged to the method.

For ratings, answers are ``estimate`` (a real number for each pair), ``rule`` (a level, where the
method has a rule of its own for that) and ``distribution`` (over the levels, where there is one).
For serving, they are ``users`` and ``items`` of all lists.  For the quality of lists, ``lists``: a
row of item ids by rank for each user, -1 where there is none.  For labels, ``labels`` as 0 and 1.
"""
