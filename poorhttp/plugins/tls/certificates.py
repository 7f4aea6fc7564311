"""Certificates of a service: read from their files, read again when these change."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from weakref import WeakSet

from poorhttp import logs
from poorhttp.config.address import is_raw_tcp
from poorhttp.config.registry import USED
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.net.listener import Listener
from poorhttp.net.transport import Transport
from poorhttp.plugins.native import not_built, use_kernel_tls
from poorhttp.plugins.tls.options import Tls
from poorhttp.process.fork import after_fork_in_child
from poorhttp.process.privileges import Privileges
from poorhttp.process.safe_open import open_regular

try:
    from poorhttp.plugins.tls._tls import TlsConfig, TlsSettings
except ModuleNotFoundError as error:
    raise ConfigError(not_built(error)) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Days before the end of a certificate from which on a warning is logged.
WARN_DAYS = 14

DAY = 24 * 3600

#: All that exist, in the main process. A child closes their descriptors: it could send them to a
#: client that names a file of `/proc/self/fd`.
_loaded: WeakSet[Certificates] = WeakSet()

#: The warnings that were logged last, by service: a reload repeats none that still holds.
_warned: dict[str, list[str]] = {}


def _close_all() -> None:
    for certificates in _loaded:
        certificates.close()


after_fork_in_child.append(_close_all)


class Certificates(Transport):
    """The certificates of a service, which running workers share.

    Attributes:
        config: what the reactor uses; workers that are forked from this process have it too.
        number: how often the files have been read again.
        fd: descriptor with the present certificates for workers that may have older ones; -1 before
            the files have been read again.
    """

    title = "TLS"
    fd = -1

    def __init__(self, settings: Settings) -> None:
        """Read the files.

        Raises:
            ConfigError: one of them cannot be used.
        """
        self._settings = settings
        self._options = options = settings.of(Tls)
        keys = options.tls_key or options.tls_certificate
        if len(keys) != len(options.tls_certificate):
            raise ConfigError(
                f"{settings.origin('tls_key')}: {_count(keys, 'key')} for "
                f"{_count(options.tls_certificate, 'certificate')}; write one for each, in the "
                "same order"
            )
        if len(options.tls_ocsp) > len(keys):
            raise ConfigError(
                f"{settings.origin('tls_ocsp')}: more responses than certificates; write one for "
                "each, in the same order"
            )
        # Absolute: a reload may change to another folder.
        certificates, self._keys, ocsp = (
            [os.path.abspath(path) for path in paths]
            for paths in (options.tls_certificate, keys, options.tls_ocsp)
        )
        client_ca = os.path.abspath(options.tls_client_ca) if options.tls_client_ca else None
        self._files = (certificates, self._keys, ocsp, client_ca)
        self.paths = [*certificates, *self._keys, *ocsp, *filter(None, [client_ca])]
        self._version = self._identities()
        #: Versions and ciphers for which the kernel encrypts. While this process may still load its
        #: module, and before workers are forked.
        self._kernel = use_kernel_tls() if options.kernel_tls else []
        self.number = 0
        _loaded.add(self)
        try:
            self.config = TlsConfig(self._read())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{settings.origin('tls_certificate')}: {error}") from None

    @classmethod
    def of(cls, settings: Settings) -> Certificates | None:
        """Read the certificates of a service; `None` if it has no address for TLS.

        Raises:
            ConfigError: a file cannot be used, or the options are at odds with each other.
        """
        secure = [address for address in settings.bind if address.protocol == "https"]
        if not secure:
            for name in USED["https"]:
                if settings.is_set(name) and settings.value(name):
                    raise ConfigError(
                        f"{settings.origin(name)}: no address of bind speaks TLS; write one as "
                        "https://HOST:PORT, or for a socket of systemd as https+fd:NAME"
                    )
            return None
        if not settings.of(Tls).tls_certificate:
            raise ConfigError(
                f"{settings.origin('bind')}: {secure[0]} needs a certificate; name its file with "
                "tls_certificate, and that of its key with tls_key"
            )
        if is_raw_tcp(settings.target):
            raise ConfigError(
                f"{settings.origin('bind')}: {settings.target} reads its connections itself, and "
                f"they come without TLS; write {secure[0]} without https"
            )
        return cls(settings)

    def _read(self) -> TlsSettings:
        options = self._options
        return TlsSettings(
            *self._files,
            client_auth_required=options.tls_client_auth == "required",
            only_tls13=options.tls_min_version == "1.3",
            # Rounded up: 0 has another meaning than half a second.
            session_timeout=-int(-options.tls_session_timeout // 1),
            kernel=options.kernel_tls,
            http2=self._settings.is_enabled("http2"),
            opener=open_regular,
        )

    def _identities(self) -> list[tuple[int, ...] | None]:
        return [_identity(path) for path in self.paths]

    @property
    def changed(self) -> bool:
        """Whether the files are not those that were read."""
        return self._identities() != self._version

    def reload(self) -> None:
        """Read the files again if they have changed; log how that went."""
        if not self.changed:
            return
        # Before they are read: if they change meanwhile, they are read once more.
        self._version = self._identities()
        try:
            # Once: what is checked is what will be used.
            read = self._read()
            # A renewal that has put an old file into place must not end what works.
            if not _expired(self.config) and (old := _expired(TlsConfig(read))):
                raise ValueError(f"{old}: the certificate has expired")
            fd = self.config.replace(read)
        except (OSError, ValueError) as error:
            logs.write("error", f"new certificates are not used; the old ones stay: {error}")
            return
        self.close()
        self.fd = fd
        self.number += 1
        names = ", ".join(dict.fromkeys(self._files[0]))
        logs.write("info", f"new certificates are used: {names}")
        self.log_warnings()

    def log_warnings(self) -> None:
        """Log what is wrong with the files, although they can be used, unless it was logged."""
        service = self._settings.service
        before, _warned[service] = _warned.get(service, []), self.warnings()
        for warning in _warned[service]:
            if warning not in before:
                logs.write("warning", warning)

    def warnings(self) -> list[str]:
        """Return sentences about files that can be used, but not for long or not by everybody."""
        found = list(self.config.warnings)
        now = time.time()
        for file, _, begin, end, _ in self.config.certificates:
            if end <= now:
                found.append(f"{file}: the certificate has expired, {_ago(now - end)}")
            elif end - now < WARN_DAYS * DAY:
                found.append(f"{file}: the certificate expires in {_days(end - now)}")
            if begin > now:
                found.append(f"{file}: the certificate is not valid yet; is the clock right?")
        for path in dict.fromkeys(self._keys):
            with suppress(OSError, ConfigError):
                found += self._weaknesses(path, os.stat(path))
        return found

    def _weaknesses(self, path: str, found: os.stat_result) -> Iterator[str]:
        """Yield sentences about users who should not have a private key."""
        if found.st_mode & (stat.S_IROTH | stat.S_IWOTH):
            can = "read" if found.st_mode & stat.S_IROTH else "write"
            yield f"{path}: everybody can {can} this private key; chmod o-rwx protects it"
            return
        if os.geteuid() != 0:
            return
        privileges = Privileges(self._settings)
        if not privileges.uid:
            return
        user = privileges.uid, privileges.gid
        group = found.st_mode & (stat.S_IRGRP | stat.S_IWGRP) and found.st_gid == user[1]
        if found.st_uid == user[0] or group:
            yield (
                f"{path}: {privileges}, the user of the workers, can use this private key; "
                "chown root and chmod 600 protect it from an application that is taken over"
            )

    def reactor_arguments(self, listeners: Sequence[Listener]) -> dict[str, Any]:
        """Return fields of `poorhttp.worker.options.WorkerOptions`."""
        return {
            "tls": self.config,
            "https_redirect": self._redirect_port(listeners),
            "hsts": self._options.hsts,
        }

    def renew_in_thread(self) -> None:
        """Read the files again when they change, in a thread of its own."""
        from poorhttp.plugins.tls.certificate_watcher import watch_in_thread  # takes memory

        watch_in_thread(self)

    def _redirect_port(self, listeners: Iterable[Listener]) -> int:
        """Return the port to which plain requests are redirected; 0: they are not."""
        port = self._options.redirect_to_https
        if port >= 0:
            return port
        ports = [each.server[1] for each in listeners if each.url.startswith("https://")]
        return int(ports[0]) if ports else 443

    @property
    def identity(self) -> str:
        """What tells the first certificate from others, for people."""
        file, _, _, _, digest = self.config.certificates[0]
        return f"has the certificate {file}, SHA-256 {digest}"

    def expiries(self) -> list[tuple[str, float]]:
        """Return the files, with the end of each certificate."""
        return [(file, end) for file, _, _, end, _ in self.config.certificates]

    def describe(self) -> list[str]:
        """Return a line for each certificate: its hosts, and how long it is valid."""
        lines = []
        now = time.time()
        for file, names, _, end, _ in self.config.certificates:
            hosts = ", ".join(names) or "no host"
            until = time.strftime("%Y-%m-%d", time.gmtime(end))
            rest = f"expired {_ago(now - end)}" if end <= now else f"valid for {_days(end - now)}"
            lines.append(f"certificate {file} for {hosts}: {rest} ({until})\n")
        if self._options.kernel_tls:
            lines.append(f"kernel TLS: {', '.join(self._kernel) or 'not in this kernel'}\n")
        return lines

    def close(self) -> None:
        """Close `fd`, in this process."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        self.close()


def _expired(config: TlsConfig) -> str:
    """Return the file of a certificate that has expired; empty if none has."""
    now = time.time()
    return next((file for file, _, _, end, _ in config.certificates if end <= now), "")


def _identity(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _count(items: tuple[object, ...], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _days(seconds: float) -> str:
    days = int(seconds // DAY)
    return f"{days} {'day' if days == 1 else 'days'}" if days else "less than a day"


def _ago(seconds: float) -> str:
    return f"{_days(seconds)} ago"
