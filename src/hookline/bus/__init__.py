"""The mediated path: contracts, carriers and clients."""
