"""What a GPU is called in every output: "rank 3 (GPU 0)", or "GPU 0" where no rank is known; and shorter where room is narrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from traceanalyzer.result.document import Device
from traceanalyzer.result.ranks import rank_list


def gpu_name(rank: int | None, device: int | None) -> str:
    """For example "rank 3 (GPU 0)"; of what is known of neither, nothing: the whole job."""
    return gpu_of("" if rank is None else f"rank {rank}", device)


def gpu_of(owner: str, device: int | None) -> str:
    """The GPU of a rank or of a file that says none: "rank 3 (GPU 0)", "a.json (GPU 0)"; without an owner "GPU 0"."""
    if device is None:
        return owner
    return f"{owner} (GPU {device})" if owner else f"GPU {device}"


def part_of(owner: str, what: str) -> str:
    """Something else of an owner, such as a thread: "rank 3 · thread 7"."""
    return f"{owner} · {what}" if owner else what


def shared_name(device: int, ranks: Sequence[int], users: int) -> str:
    """What to call a GPU that several files used at the same time: "GPU 0 of ranks 0-3"."""
    return f"GPU {device} of {f'ranks {rank_list(ranks)}' if len(ranks) == users else f'{users} files'}"


def device_name(device: Device) -> str:
    """What a row of the result is called, which may be a GPU that several files used."""
    shared = device.users > 1
    return shared_name(device.device, device.ranks, device.users) if shared else gpu_name(device.rank, device.device)


def gpu_namer(devices: Sequence[Device]) -> Callable[[int | None, int | None], str]:
    """What to call a GPU of this job as shortly as possible: "rank 3" where each has one GPU, else "rank 3 (GPU 0)"."""
    ranks = {device.rank for device in devices}
    one_each = len(ranks) == len(devices)
    shared = {(one.rank, one.device): device_name(one) for one in devices if one.users > 1}

    def name(rank: int | None, device: int | None) -> str:
        if (rank, device) in shared:
            return shared[rank, device]  # type: ignore[index]
        if rank is None:
            return gpu_name(None, device) or "a GPU"
        return gpu_name(rank, None if one_each else device)

    return name


def short_names(devices: Sequence[Device]) -> dict[tuple[int | None, int], str]:
    """The same for the head of a narrow column: "rank 3", "GPU 3" or "r3/GPU0"."""
    namer = gpu_namer(devices)
    names = {(one.rank, one.device): namer(one.rank, one.device) for one in devices}
    return {key: f"r{key[0]}/GPU{key[1]}" if "(" in name else name for key, name in names.items()}
