"""The page in the browser that shows the journal and the hooks (extra ``inspect``)."""
