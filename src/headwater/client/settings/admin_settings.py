"""The settings of an admin client."""

from typing import Final

from headwater.base.settings import Setting, SettingKind, SettingTable
from headwater.client.settings.common_settings import COMMON_SETTINGS

# fmt: off
ADMIN_ONLY_SETTINGS: Final = SettingTable("admin", [
    Setting("default.api.timeout.ms", SettingKind.INT, 60000, "How long an operation may take, "
            "with all its retries, if the call has no time limit of its own.", lower=1),
    Setting("retries", SettingKind.INT, 2**31 - 1, "How many times a failed request is tried "
            "again.",
            lower=0, without_effect="The time of an operation bounds its retries, "
            "not their number."),
])
# fmt: on

ADMIN_SETTINGS: Final = SettingTable.combine("admin", COMMON_SETTINGS, ADMIN_ONLY_SETTINGS)
