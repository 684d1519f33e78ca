"""What is made of figures: budgets to compare them with, and plots."""
