"""What the loop costs in tokens and money: measured on real prompts, told as a document."""
