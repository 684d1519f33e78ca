"""What is put right in victims: no podgroup breaks needlessly, task priorities hold, quotas refuse fewer of them."""
