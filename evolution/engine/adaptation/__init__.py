"""Adaptation: a playbook that is trained on samples (offline) or on a stream of them (online).

An adapter needs a Solver (it answers), a Learner (the playbook), an Environment (it judges the
answers) and Checkpoints. `benchmarks.quality.memory_playbook` has all of them without Django;
docs/ADAPTATION.md shows them in use.
"""
