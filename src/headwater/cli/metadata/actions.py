"""What `headwater metadata` does with a store and a file."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import Final

from headwater import __version__
from headwater.base.printable import listed
from headwater.cli.metadata.places import Place, opened
from headwater.cluster.backup.document import (
    MetadataDocument,
    decode_document,
    encode_document,
)
from headwater.cluster.backup.document_check import check_document
from headwater.cluster.backup.numbers_ahead import with_numbers_ahead
from headwater.cluster.backup.reading import read_document
from headwater.cluster.backup.restoring import restore
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.node_locations import UNCLEAN_BROKERS
from headwater.storage.disk.disk_files import DiskFiles

#: Only its owner may read it: the cluster's secret is in it.
_MODE: Final = 0o600


async def export_to(place: Place, path: str) -> None:
    origin = {
        "headwater": __version__,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "exported_from": place.name,
    }
    async with opened(place) as store:
        document = await read_document(store, origin)
    image = await check_document(document)
    _write_for_owner(path, encode_document(document))
    print(f"Exported to {path}, which only you can read: it holds the cluster's secret.")
    _describe(document, image)
    if not document.is_of_one_moment:
        print(
            "headwater: The metadata went on changing while it was read, so the file may hold some "
            "of a change and not the rest of it. Export again when fewer partitions change.",
            file=sys.stderr,
        )


async def import_from(path: str, place: Place, *, may_replace: bool) -> None:
    document = _read(path)
    image = await check_document(document)
    async with opened(place, may_create=True) as store:
        await restore(
            store,
            with_numbers_ahead(document),
            may_replace=may_replace,
            is_one_transaction=not place.is_zookeeper,
        )
    print(f"Imported {path} into {place.name}.")
    _describe(document, image)


async def check_file(path: str) -> None:
    document = _read(path)
    _describe(document, await check_document(document))


def _read(path: str) -> MetadataDocument:
    with open(path, "rb") as file:
        return decode_document(file.read())


def _write_for_owner(path: str, data: bytes) -> None:
    """The old file or the new one, also after a crash, and never readable for others."""
    temporary = f"{path}.tmp"
    if os.path.exists(temporary):
        os.remove(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)
    DiskFiles().sync_dir(os.path.dirname(path) or ".")


def _describe(document: MetadataDocument, image: ClusterImage) -> None:
    """A few lines that tell whether it is what was meant."""
    partitions = [each for topic in image.topics.values() for each in topic.partitions]
    brokers = sorted({broker_id for each in partitions for broker_id in each.replicas})
    print(f"  cluster     {image.cluster_id}")
    if origin := document.origin:
        said = f"{origin.get('exported_at')}, by Headwater {origin.get('headwater')}"
        print(f"  exported    {said}, from {origin.get('exported_from')}")
    print(f"  topics      {len(image.topics):,}, {len(partitions):,} partitions")
    print(f"  brokers     {listed(brokers) or 'none'}")
    print(f"  settings    of {len(image.configs):,} topics, brokers, groups and others")
    moving = sum(each.is_moving for each in partitions)
    if moving:
        print(f"  moving      {moving:,} partitions, which go on when the brokers start")
    marks = [path for path in document.nodes if path.startswith(f"{UNCLEAN_BROKERS}/")]
    if marks:
        print(f"  not clean   {listed([each.rpartition('/')[2] for each in marks])}")
