"""The wheel and the source distribution, checked as somebody gets them."""
