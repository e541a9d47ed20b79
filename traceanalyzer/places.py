"""Places in a program as a person reads them: an operator or a Python frame, and the line of the user's code that it was called from.

torch/optim/adam.py(139): _init_group    becomes   adam.py:139 (_init_group)
<built-in method add_ of Tensor object at 0x7f3bb4f3d840>   becomes   <built-in method add_ of Tensor object>
"""

from __future__ import annotations

import re
import sys

# Packages that programs use rather than consist of, by their top folder or file. The profiler cuts off the path in front of them.
LIBRARIES = frozenset(
    (
        *("torch", "torchvision", "torchaudio", "torchdata", "torchmetrics", "torchgen", "functorch", "triton", "nvtx"),
        *("numpy", "scipy", "pandas", "sklearn", "PIL", "cv2", "numba", "cupy", "einops", "tqdm", "yaml", "psutil"),
        *("transformers", "accelerate", "datasets", "diffusers", "peft", "trl", "tokenizers", "huggingface_hub"),
        *("safetensors", "timm", "sentence_transformers", "lightning", "pytorch_lightning", "lightning_fabric"),
        *(
            "lightning_utilities",
            "deepspeed",
            "apex",
            "xformers",
            "flash_attn",
            "flashinfer",
            "bitsandbytes",
            "fairscale",
        ),
        *(
            "transformer_engine",
            "nvidia",
            "pynvml",
            "vllm",
            "sglang",
            "ray",
            "dask",
            "distributed",
            "fsspec",
            "filelock",
        ),
        *("jax", "jaxlib", "flax", "optax", "haiku", "tensorflow", "tensorboard", "keras", "wandb", "mlflow", "hydra"),
        *("omegaconf", "pydantic", "pydantic_core", "webdataset", "streaming", "ipykernel", "IPython", "traitlets"),
        *("sympy", "mpmath", "networkx", "jinja2", "markupsafe", "requests", "urllib3", "httpx", "aiohttp"),
        *("matplotlib", "seaborn", "pyarrow", "polars", "h5py", "zarr", "google", "grpc", "nltk", "spacy"),
        *("tiktoken", "sentencepiece", "viztracer", "orjson", "msgspec", "attr", "click", "typer", "rich", "loguru"),
        *("packaging", "setuptools", "pkg_resources", "pip", "dateutil", "pytz", "six", "boto3", "botocore", "s3fs"),
        *("albumentations", "imageio", "skimage", "soundfile", "librosa", "gymnasium", "mpi4py", "joblib"),
        *("albucore", "decord", "torch_geometric", "dgl", "ignite", "fastai"),
        *("zmq", "tornado", "cloudpickle", "dill", "pytest", "_pytest", "pluggy"),
    )
)
# Files of the standard library whose names people give to their own scripts as well.
_OWN_SCRIPTS = frozenset(("code", "profile", "statistics", "this", "trace"))
_STANDARD = sys.stdlib_module_names - _OWN_SCRIPTS
_LIBRARY_PATH = re.compile(r"(?:^|/)(?:site-packages|dist-packages|python\d\.\d+|torchinductor_[^/]*)/")
_FRAME = re.compile(r"(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)
_TYPED = ("<ipython-input", "<stdin>")
_CALLED_FROM = " called from "
_LINE = re.compile(r"(?P<short>[^ ].*:(?P<line>\d{1,9})) \(.*\)", re.DOTALL)
_TEXT = re.compile(r"(?P<at>[^ ]+(?::\d+|\.py)) \((?P<function>.*)\)", re.DOTALL)
_ADDRESS = re.compile(r"(?: of (?:pybind11_builtins\.\S+|type|module) object)?(?: at 0x[0-9a-fA-F]+)")


def is_user_frame(name: str) -> bool:
    """Whether a Python frame is the user's own code: a file that is no library's, neither built in nor generated."""
    found = _FRAME.match(name)
    if not found:
        return False
    file = found["file"].replace("\\", "/")
    if file.startswith("<"):
        return file.startswith(_TYPED)
    top = file.lstrip("./").partition("/")[0].removesuffix(".py")
    return top not in LIBRARIES and top not in _STANDARD and not _LIBRARY_PATH.search(file)


def frame_text(name: str) -> str:
    """A Python frame as `file:line (function)`, with line 0 as `file (function)`; what is none keeps its name, without addresses."""
    parsed = parsed_frame(name)
    if not parsed:
        return _ADDRESS.sub("", name)
    file, line, function = parsed
    short = file.rpartition("/")[2]
    # Some profilers know no lines.
    return f"{short}:{line} ({function})" if line != "0" else f"{short} ({function})"


def parsed_frame(name: str) -> tuple[str, str, str] | None:
    """File, line and function of a Python frame; None for what has no line. The file is as the profiler names it, with slashes only."""
    found = _FRAME.match(name)
    return (found["file"].replace("\\", "/").rstrip("/"), found["line"], found["function"]) if found else None


def place_text(what: str, source: str | None, annotation: str | None) -> str:
    """What ran and the nearest that is known around it: `aten::item called from train.py:41 (train_step)`."""
    if source is not None:
        return what if source == what else f"{what}{_CALLED_FROM}{source}"
    return what if annotation in (None, what) else f"{what} in {annotation}"


def place_parts(place: str) -> tuple[str, str | None]:
    """What `place_text` was given: what ran, and where it was called from, None where nothing is said of that."""
    what, called, source = place.rpartition(_CALLED_FROM)
    return (what, source) if called else (place, None)


def frame_parts(text: str) -> tuple[str, str] | None:
    """`file:line`, or the file, and the function of what `frame_text` wrote; None for anything else, and for a file whose name has
    spaces."""
    found = _TEXT.fullmatch(text)
    return (found["at"], found["function"]) if found else None


def line_of(source: str) -> tuple[str, str] | None:
    """`file:line` of a place as `frame_text` writes it, and the line alone; None for a place without one."""
    found = _LINE.fullmatch(source)
    return (found["short"], found["line"]) if found else None


def is_internal(operator: str) -> bool:
    """Whether an operator is a step inside one that people call: `aten::_local_scalar_dense` inside `aten::item`."""
    return operator.rpartition("::")[2].startswith("_")
