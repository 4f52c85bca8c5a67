"""What all chapters share: types, ids, indicators, parameters, random numbers, files."""
