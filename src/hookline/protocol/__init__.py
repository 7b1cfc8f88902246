"""The protocol: events, inputs, outputs, results, dialects, JSON text, validators."""
