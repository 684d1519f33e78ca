"""The ingestor: events and decisions in, snapshots out."""
