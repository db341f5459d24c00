"""UpdateImage (private key 10000): the controller tells this broker what has changed.

The broker that asks speaks for itself, as the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.update_image import UpdateImageRequest, UpdateImageResponse

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext


async def handle(request: UpdateImageRequest, context: RequestContext) -> UpdateImageResponse:
    context.check_speaks_for(request.controller_id)
    return await context.broker.member.receive(request)


API = ApiHandler(CARDS[ApiKey.UPDATE_IMAGE], handle)
