"""Meaningful faults, each put into a copy of the product alone: does a test notice?"""
