"""BERT as the library transformers has it."""
