"""What becomes of victims: they find other places, or are lost; and scenarios judged by that."""
