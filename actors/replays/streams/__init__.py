"""Streams of jobs: the jobs, their lives while a stream is replayed, and the measures of a replay."""
