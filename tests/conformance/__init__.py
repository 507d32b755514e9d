"""What every worker must do, tried on the reference worker and on one in another language."""
