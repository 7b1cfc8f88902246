"""Hooks in other people's frameworks: one module, one extra and one page for each.

Every adapter takes a Config or a session. It is written on the public names of
``hookline.agent`` and on ``kit``, which has what several of them need;
``docs/how-to/frameworks/your-own.md`` builds one from nothing, and
``hookline.testing.adapters`` tests it.
"""
