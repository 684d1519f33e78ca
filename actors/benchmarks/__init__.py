"""What `clearway bench` measures, and the fleets that it measures on."""
