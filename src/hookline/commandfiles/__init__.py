"""Which files a command line runs, reads and writes."""
