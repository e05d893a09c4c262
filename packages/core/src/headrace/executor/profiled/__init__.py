"""The executor's parts with a record of what they do; in place of the plain ones, if asked for."""
