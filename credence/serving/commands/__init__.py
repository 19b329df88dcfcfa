"""The commands of `credence` that run and maintain a service: they need its distribution."""

from credence.serving.commands import backup, doctor, keys, migrate, service

COMMANDS = (
    service.serve,
    service.api,
    service.worker,
    migrate.migrate,
    doctor.doctor,
    backup.backup,
    backup.restore,
)
KEYS = keys.app
