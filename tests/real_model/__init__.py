"""Prompts against models: ten cases, what an answer must and should be, and recorded answers.

`make real-model` asks SmolLM2-135M under llama.cpp, or with ARGS="--base-url … --model …" any
endpoint, and prints the table by which an edit of a prompt is judged. The suite replays what was
recorded; the answers `by hand` are what a good model should say.
"""
