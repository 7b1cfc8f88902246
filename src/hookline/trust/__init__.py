"""Which project hooks a person has agreed to, byte for byte."""
