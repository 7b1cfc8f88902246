"""Hooks in other people's frameworks: one module, one extra and one page for each.

Every adapter takes a Config or a session. It is written on the public names of
``hookline.agent`` and on ``kit``, which has what several of them need. To add one, copy
``fastmcp.py`` and run ``hookline.testing.adapters.AdapterSuite``
(docs/how-to/frameworks/your-own.md).
"""
