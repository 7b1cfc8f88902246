"""OpenTelemetry and Prometheus, both optional."""
