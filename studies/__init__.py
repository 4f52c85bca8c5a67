"""Studies with marginmf, run from a checkout: Kumar's thesis measured again, and other libraries.

`studies.harness` measures and stores cells, `studies.thesis` has the tables and figures of the
thesis, and `studies.peers` compares with other libraries: ``python -m studies`` lists the commands.
"""
