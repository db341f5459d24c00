"""The delay service that runs beside a broker."""

from typing import Final

from headwater.base.settings import Setting, SettingKind, SettingTable

# fmt: off
DELAY_SERVICE_SETTINGS: Final = SettingTable("broker", [
    Setting("delay.service.enable", SettingKind.BOOLEAN, False, "Whether `headwater serve` runs a "
            "delay service beside the broker, which forwards records of the topics __delay_30s and "
            "so on when their time has come; not in Kafka."),
    Setting("delay.service.levels", SettingKind.LIST, (
            "5s", "10s", "30s", "1m", "2m", "5m", "10m", "20m", "30m", "45m", "1h", "2h"),
            "The delays that it has topics for, rising; not in Kafka."),
])
# fmt: on
