"""Methods to compare with: those that everybody knows, under the same decision rules."""
