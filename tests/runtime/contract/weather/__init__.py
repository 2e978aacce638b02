"""What is generated for a contract, written by hand: for one revision and for all of them."""
