"""Streams and ledger: the ports, and what stands behind them."""
