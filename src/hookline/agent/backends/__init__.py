"""Models behind the SDKs, and one that follows a script."""
