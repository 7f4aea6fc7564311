"""What tests and the load lab share; it imports neither."""
