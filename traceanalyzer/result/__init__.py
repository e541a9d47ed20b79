"""The result document, its first sentence, and the words that all outputs share."""
