"""Secrets generated at the first start and kept in files."""

import secrets
from pathlib import Path


def read_or_create_secret(name: str, data_dir: Path) -> str:
    """The secret in the file `name` of the folder, generated if missing."""
    path = data_dir / name
    if not path.exists():
        fresh = path.with_name(f"{name}.{secrets.token_hex(4)}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        # With two concurrent first starts link() succeeds for one; both then read the same file.
        try:
            path.hardlink_to(fresh)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text().strip()
