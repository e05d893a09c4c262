"""Cases of operators: one table that all suites share, see `table`."""
