"""``hookline bridge`` in the settings of coding agents."""
