"""Gathering: a gang placed as close together as the network allows, and room made for the whole job (Koordinator).

After "Job Scheduling" and "Network-Topology Aware" of Koordinator's manual.
"""
