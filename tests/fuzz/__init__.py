"""The sieve: attacks on everything that reads what others made, and the judge of what happens.

`make fuzz` runs it, ``PYTHONPATH=tests python -m fuzz --help`` says how else.  Every attack is a
function of its kind, the seed and its number, so that one can be made again by itself::

    PYTHONPATH=tests python -m fuzz models --seed 0 --only 4711

Attacks are made in processes of their own (`worker`), with bounds checks in compiled kernels and
under limits of memory and time, so that a crash is seen and does no harm.  An attack has failed if
the process dies or hangs, if loading costs more than the file is worth, or if any error comes out
that is not a sentence which marginmf raised itself (`judging`).
"""
