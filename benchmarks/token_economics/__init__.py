"""The cost of the loop in tokens and money: measured on real prompts, written as a document."""
