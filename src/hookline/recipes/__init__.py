"""Ready hooks, and what they share: reading tool inputs as an attacker writes them."""
