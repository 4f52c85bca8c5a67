"""Systems that the max-margin factorisers are compared with, one to a file."""
