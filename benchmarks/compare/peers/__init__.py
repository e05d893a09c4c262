"""What a user of each library writes for the cases of the comparison."""
