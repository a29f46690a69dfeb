"""What trials have found out about versions, in a word each."""

from collections.abc import Iterable, Mapping

from playbooks.models import Playbook, Trial, Version

PROVEN = {Trial.Verdict.BETTER: "proven better", Trial.Verdict.NO_DIFFERENCE: "no harm found"}


def version_badges(playbook: Playbook, versions: Iterable[Version]) -> Mapping[int, str]:
    """The badge of each version that an evolution made, by number; one query."""
    rows = playbook.trials.filter(kind=Trial.Kind.VERSION).with_versions()
    trials = list(rows.select_related("halfway_version").defer("halfway_version__text"))
    return {
        version.number: _badge(version.number, trials)
        for version in versions
        if version.reason == Version.Reason.EVOLUTION
    }


def _badge(number: int, trials: Iterable[Trial]) -> str:
    """By the newest trial that says something about this version."""
    for trial in trials:
        last = trial.newest_version.number if trial.newest_version else number
        if not trial.stable_version.number < number <= last:
            continue
        if trial.is_gating:
            return "being checked"
        if trial.is_running:
            return "on trial"
        if trial.restored_version_id or trial.status == Trial.Status.REVERTING:
            return "taken back"
        if trial.verdict == Trial.Verdict.WORSE:
            return "found worse"
        if trial.verdict in PROVEN and number <= trial.accepted_version.number:
            return PROVEN[Trial.Verdict(trial.verdict)]
    return "unproven"
