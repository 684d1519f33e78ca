"""Everything imperative: broker, Ray, telemetry, files, the clock. It does; it decides nothing."""
