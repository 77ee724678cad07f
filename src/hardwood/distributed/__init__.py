"""Train on rows that several processes hold, or that no memory holds at once."""

from hardwood.distributed.batches import ArrayBatches, ParquetBatches, fit_batches
from hardwood.distributed.communicator import Communicator, connect
from hardwood.distributed.fit import fit_part
from hardwood.distributed.train import Checkpoint

__all__ = [
    "ArrayBatches",
    "Checkpoint",
    "Communicator",
    "ParquetBatches",
    "connect",
    "fit_batches",
    "fit_part",
]
