"""One module for each agent SDK: read the advice before a run, report the outcome after it.

Each needs the SDK that it is named after. `playbook` defaults to the one of the folder; `check`
judges the answer (the truth: success or failure), without it the outcome is `partial`.
"""
