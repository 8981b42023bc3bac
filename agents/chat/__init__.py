"""What the chat shows a customer and what they may ask for in it, whichever door they come by."""
