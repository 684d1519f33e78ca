"""What the ingestor knows beside the columns: documents kept, names of rows, decisions that stand."""
