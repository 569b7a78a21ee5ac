"""Tables as people have them: read from files, their columns understood, and written again."""
