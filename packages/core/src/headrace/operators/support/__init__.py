"""Declaration, planning and lookup of operators, and code shared by families of them."""
