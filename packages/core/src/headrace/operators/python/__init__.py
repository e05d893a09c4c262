"""Operators that call functions of the user's."""
