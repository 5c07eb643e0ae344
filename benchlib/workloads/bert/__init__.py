"""BERT: a transformer that learns a language by guessing masked words and whether two sentences follow each other."""
