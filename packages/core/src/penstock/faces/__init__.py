"""Makes the public faces of the operators, ``fn`` and ``ops``, from their declarations."""
