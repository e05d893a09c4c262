"""Makes the public interfaces of the operators, ``fn`` and ``ops``, from their declarations."""
