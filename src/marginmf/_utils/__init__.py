"""What all packages share: types, ids, indicators, parameters, random numbers, files."""
