"""What is run by hand: serve, test, chat."""
