"""A translator: one recurrent network reads a sentence, another writes it in the other language, looking back at it."""
