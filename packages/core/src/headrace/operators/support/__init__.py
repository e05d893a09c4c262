"""How operators are declared, planned and found, and what families of them share."""
