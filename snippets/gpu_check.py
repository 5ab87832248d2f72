"""Say in plain words why TensorFlow does or does not use the GPU of this machine.

    python gpu_check.py               a report; the exit code is 0 only if a GPU worked for TensorFlow
    python gpu_check.py --json        the facts, the findings and the verdict as JSON
    python gpu_check.py --read FILE   judge facts that --json saved, perhaps on another machine
    eval "$(python gpu_check.py --export)"   put the CUDA libraries that pip installed on LD_LIBRARY_PATH

It needs nothing but Python 3.8, and changes nothing. TensorFlow and the NVIDIA libraries are loaded in child
processes only: when one of them ends its process without an exception, this program survives and says how it
ended. Every fact comes from one function below, every finding from `judge`, which looks at facts alone.
"""

import argparse
import ast
import glob
import importlib.util
import json
import mmap
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

SCHEMA = "eager-and-graph/gpu-check"
SCHEMA_VERSION = 1
SECONDS = 600  # a GPU newer than the wheel compiles its kernels at first use, which takes minutes
WSL_FOLDER = "/usr/lib/wsl/lib"
KERNEL_MODULE = "/proc/driver/nvidia/version"

# What each TensorFlow was tested with: {version: (CUDA, cuDNN)}. The page version-table has the source of each cell.
TESTED_WITH = {
    version: (cuda, cudnn)
    for cuda, cudnn, versions in (
        ("12.5", "9.3", "2.18 2.19 2.20 2.21"),
        ("12.3", "8.9", "2.16 2.17"),
        ("12.2", "8.9", "2.15"),
        ("11.8", "8.7", "2.14"),
        ("11.8", "8.6", "2.12 2.13"),
        ("11.2", "8.1", "2.5 2.6 2.7 2.8 2.9 2.10 2.11"),
        ("11.0", "8.0", "2.4"),
        ("10.1", "7.6", "2.1 2.2 2.3"),
        ("10.0", "7.4", "2.0"),
    )
    for version in versions.split()
}

# The oldest driver for each CUDA, on Linux and on Windows: NVIDIA, "CUDA Compatibility", minor version compatibility.
OLDEST_DRIVER = {
    "13": ("580", "580"),
    "12": ("525", "525"),
    "11": ("450", "450"),
    "10.1": ("418.39", "418.96"),
    "10.0": ("410.48", "411.31"),
}

# The libraries of each CUDA in the order in which TensorFlow opens them, with the number in the file's name:
# cufft-11 is libcufft.so.11 or cufft64_11.dll.
LINUX_LIBRARIES = {
    "13": "cudart-13 cublas-13 cublasLt-13 cufft-12 cusolver-12 cusparse-12",
    "12": "cudart-12 cublas-12 cublasLt-12 cufft-11 cusolver-11 cusparse-12",
    "11.8": "cudart-11.0 cublas-11 cublasLt-11 cufft-10 cusolver-11 cusparse-11",
    "11": "cudart-11.0 cublas-11 cublasLt-11 cufft-10 curand-10 cusolver-11 cusparse-11",
    "11.0": "cudart-11.0 cublas-11 cublasLt-11 cufft-10 curand-10 cusolver-10 cusparse-11",
    "10.1": "cudart-10.1 cublas-10 cufft-10 curand-10 cusolver-10 cusparse-10",
    "10.0": "cudart-10.0 cublas-10.0 cufft-10.0 curand-10.0 cusolver-10.0 cusparse-10.0",
}
WINDOWS_LIBRARIES = {
    "11": "cudart-110 cublas-11 cublasLt-11 cufft-10 curand-10 cusolver-11 cusparse-11",
    "11.0": "cudart-110 cublas-11 cublasLt-11 cufft-10 curand-10 cusolver-10 cusparse-11",
    "10.1": "cudart-101 cublas-10 cufft-10 curand-10 cusolver-10 cusparse-10",
    "10.0": "cudart-100 cublas-100 cufft-100 curand-100 cusolver-100 cusparse-100",
}

WINDOWS_EXITS = {
    0xC0000005: "access violation (0xC0000005)",
    0xC0000409: "fail fast, which is what abort() does on Windows (0xC0000409)",
    0xC000001D: "illegal instruction (0xC000001D)",
    0xC0000135: "a DLL was not found (0xC0000135)",
}

# Lines of TensorFlow's stderr that say nothing about the GPU, and the list of modules that faulthandler appends.
NOISE = re.compile(
    r"oneDNN|cpu_feature_guard|To enable the following|InitializeLog|NUMA node|Unable to register cu"
    r"|Could not find TensorRT|^Extension modules:"
)
FATAL = re.compile(r"F\d{4} |\S+ \S+: F ")

# -------------------------------------------------------------------------------------------- programs of the children

OPEN_LIBRARIES = r"""
import ctypes, json, os, sys
wanted = json.loads(sys.argv[1])          # [[name, path to open], ...]

def version(stem, library):
    if stem == "cudart":
        number = ctypes.c_int()
        if library.cudaRuntimeGetVersion(ctypes.byref(number)):
            return None
        return "%d.%d" % (number.value // 1000, number.value % 1000 // 10)
    read, parts = getattr(library, stem + "GetProperty"), []
    for which in range(3):
        number = ctypes.c_int()
        if read(which, ctypes.byref(number)):
            return None
        parts.append(str(number.value))
    return ".".join(parts)

def loaded_from(name):
    try:
        lines = [line.strip() for line in open("/proc/self/maps")]
        return next((line.split(None, 5)[5] for line in lines if os.path.basename(line).startswith(name)), None)
    except (OSError, IndexError):
        return None

for name, path in wanted:
    found = {"name": name, "opened": False, "path": None, "version": None, "error": None}
    print(json.dumps({"opening": name}), flush=True)
    try:
        library = ctypes.CDLL(path, winmode=0) if os.name == "nt" else ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        found["opened"], found["path"] = True, (path if os.sep in path else loaded_from(name))
        stem = name.split(".")[0].split("64_")[0]
        found["version"] = version(stem[3:] if stem.startswith("lib") else stem, library)
    except OSError as error:
        found["error"] = str(error)
    except Exception:                      # opened, but it does not tell its version
        pass
    print(json.dumps(found), flush=True)
"""

ASK_DRIVER = r"""
import ctypes, json, os, sys
name, management = ("nvcuda.dll", "nvml.dll") if os.name == "nt" else ("libcuda.so.1", "libnvidia-ml.so.1")
found = {"library": name, "opened": False, "error": None}
try:
    cuda = ctypes.CDLL(name)
    found["opened"] = True
    print(json.dumps(found), flush=True)
    found["init"] = cuda.cuInit(0)
    number = ctypes.c_int()
    if not cuda.cuDriverGetVersion(ctypes.byref(number)):
        found["cuda"] = "%d.%d" % (number.value // 1000, number.value % 1000 // 10)
    if found["init"] == 0 and not cuda.cuDeviceGetCount(ctypes.byref(number)):
        found["devices"] = []
        for index in range(number.value):
            device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
            text = ctypes.create_string_buffer(100)
            cuda.cuDeviceGet(ctypes.byref(device), index)
            cuda.cuDeviceGetName(text, 100, device)
            cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
            cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
            capability = "%d.%d" % (major.value, minor.value)
            found["devices"].append({"name": text.value.decode(errors="replace"), "capability": capability})
except OSError as error:
    found["error"] = str(error)
try:
    ctypes.CDLL(management)
    found["management"] = True
except OSError:
    found["management"] = False
print(json.dumps(found), flush=True)
"""

TRY_TENSORFLOW = r"""
import json
def tell(step, **facts):
    print("gpu_check " + json.dumps(dict(facts, step=step)), flush=True)
tell("import")
import tensorflow as tf
tell("list", version=tf.__version__, file=tf.__file__, cuda=tf.test.is_built_with_cuda())
gpus = tf.config.list_physical_devices("GPU")
tell("listed", gpus=[gpu.name for gpu in gpus])
if gpus:
    try:
        tell("multiply")
        with tf.device("/GPU:0"):
            product = tf.linalg.matmul(tf.ones([64, 64]), tf.ones([64, 64]))
        tell("multiplied", device=product.device, right=float(product[0, 0]) == 64.0)
        tell("convolve")
        with tf.device("/GPU:0"):
            image = tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 4]), 1, "VALID")
        tell("convolved", device=image.device, right=float(image[0, 0, 0, 0]) == 27.0)
    except Exception as error:
        tell("raised", type=type(error).__name__, text=str(error)[:600])
tell("end")
"""

# ---------------------------------------------------------------------------------------------------- collecting facts


def run_child(program, *arguments, seconds=60, environment=None):
    """Runs a program text in a new Python. Returns (how it ended or None if it ran to its end, stdout, stderr)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ, **(environment or {})),
        )
        try:
            ended = how_it_ended(process.wait(seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            ended = "did not end within %d s" % seconds
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return ended, texts[0], texts[1]


def how_it_ended(code):
    """Turns a process's exit code into words; None for 0."""
    if code == 0:
        return None
    if code < 0 and os.name != "nt":
        try:
            return "was ended by %s" % signal.Signals(-code).name
        except ValueError:
            return "was ended by signal %d" % -code
    return "exited with %s" % WINDOWS_EXITS.get(code & 0xFFFFFFFF, code)


def json_lines(text, prefix=""):
    """The JSON objects in a child's stdout, one a line; other lines are not ours."""
    found = []
    for line in text.splitlines():
        if line.startswith(prefix + "{"):
            try:
                found.append(json.loads(line[len(prefix) :]))
            except ValueError:
                pass
    return found


def system():
    """The operating system, Python, and whether this is WSL or a container."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "wsl": "microsoft" in platform.release().lower(),
        "container": os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"),
        "device files": sorted(glob.glob("/dev/nvidia*") + glob.glob("/dev/dxg")),
    }


def environment():
    """The environment variables that decide whether a GPU is found."""
    names = "CUDA_VISIBLE_DEVICES CUDA_HOME CUDA_PATH LD_LIBRARY_PATH NVIDIA_DRIVER_CAPABILITIES NVIDIA_VISIBLE_DEVICES"
    names += " TF_CPP_MIN_LOG_LEVEL CONDA_PREFIX VIRTUAL_ENV"
    return {name: os.environ[name] for name in names.split() if name in os.environ}


def packages():
    """{name: version} of the installed packages that have to do with TensorFlow and CUDA."""
    from importlib import metadata

    found = {}
    for each in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", (each.metadata["Name"] or "")).lower()
        if re.match(r"(tensorflow|tf-nightly|tf-keras$|keras$|numpy$|nvidia-|tensorrt)", name):
            found.setdefault(name, each.version)
    return found


def wheel():
    """What the installed TensorFlow says about its own build, read from its files; TensorFlow is not imported."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or not spec.origin:
        return {"found": False}
    folder = os.path.dirname(spec.origin)
    found = {"found": True, "folder": folder, "origin": spec.origin, "build": None, "looks in": [], "cuda folders": {}}
    path = os.path.join(folder, "python", "platform", "build_info.py")
    if os.path.exists(path):
        found["build"], found["source"] = read_build_info(path), path
    found["looks in"] = own_search_path(os.path.join(folder, "libtensorflow_framework.so.2"))
    beside = os.path.dirname(folder)
    for path in sorted(glob.glob(os.path.join(beside, "nvidia", "*", "*"))):
        if os.path.basename(path) not in ("lib", "bin"):
            continue
        found["cuda folders"][os.path.relpath(path, beside).replace(os.sep, "/")] = sorted(os.listdir(path))
    return found


def read_build_info(path):
    """The dict in TensorFlow's build_info.py, or its plain assignments where it is older than the dict."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    plain = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "OrderedDict" and node.args:
            return dict(ast.literal_eval(node.args[0]))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                plain[node.targets[0].id.replace("_number", "")] = ast.literal_eval(node.value)
            except ValueError:
                pass
    return plain.get("build_info", plain)  # Windows wheels of 2.3 hold a plain dict


def own_search_path(library):
    """The folders beside TensorFlow in which the library of it that opens CUDA's looks by itself (its RUNPATH)."""
    if not os.path.exists(library):
        return []
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return sorted({match.decode() for match in re.findall(rb"\$ORIGIN/\.\./(nvidia/[a-z_]+/lib)", content)})


def driver():
    """What nvidia-smi, the kernel and the driver's own library say."""
    found = {"tool": None}
    tool = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path=WSL_FOLDER)
    if tool:
        found["tool"] = ask_tool(tool)
    if os.path.exists(KERNEL_MODULE):
        with open(KERNEL_MODULE, encoding="utf-8", errors="replace") as file:
            match = re.search(r"\d{3}\.[\d.]+", file.read())
        found["kernel module"] = match.group() if match else None
    found["wsl library"] = os.path.exists(os.path.join(WSL_FOLDER, "libcuda.so.1"))
    ended, out, err = run_child(ASK_DRIVER)
    lines = json_lines(out)
    found["library"] = dict(lines[-1] if lines else {"opened": False}, ended=ended)
    return found


def ask_tool(tool, seconds=60):
    """nvidia-smi's answer: driver version, its CUDA version, and the GPUs."""

    def ask(*arguments):
        try:
            run = subprocess.run(
                [tool, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=seconds,
            )
            return run.returncode, run.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return None, "nvidia-smi did not answer within %d s" % seconds

    answer = {"path": tool, "driver": None, "cuda": None, "gpus": [], "error": None}
    code, text = ask()
    for key, pattern in (("driver", r"Driver Version:\s*([\d.]+)"), ("cuda", r"CUDA Version:\s*([\d.]+)")):
        match = re.search(pattern, text)
        answer[key] = match.group(1) if match else None
    if code != 0:
        answer["error"] = " ".join(text.split())[:300] or "exit code %s" % code
        return answer
    for fields in ("name,compute_cap", "name"):  # an old nvidia-smi does not know compute_cap
        code, text = ask("--query-gpu=" + fields, "--format=csv,noheader")
        if code == 0:
            for line in text.splitlines():
                parts = [part.strip() for part in line.split(",")]
                answer["gpus"].append({"name": parts[0], "capability": parts[1] if len(parts) > 1 else None})
            break
    return answer


def libraries(wheel_facts, tensorflow_version):
    """Opens, in a child, each CUDA library that this TensorFlow opens, from where it would; notes path and version."""
    build = (wheel_facts or {}).get("build") or {}
    if not build.get("is_cuda_build"):
        return []
    names = files_wanted(build, tensorflow_version, os.name == "nt")
    wanted = [[name, where_it_is(name, wheel_facts)] for name in names]
    ended, out, err = run_child(OPEN_LIBRARIES, json.dumps(wanted))
    lines = json_lines(out)
    found = [line for line in lines if "name" in line]
    if ended and lines and "opening" in lines[-1]:
        found.append(
            dict(name=lines[-1]["opening"], opened=False, path=None, version=None, error="its process " + ended)
        )
    return found


def where_it_is(name, wheel_facts):
    """What to open for a library: its path where TensorFlow finds it, else its name. LD_LIBRARY_PATH comes first."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if folder and os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    for folder, files in wheel_facts.get("cuda folders", {}).items():
        if name in files and folder in wheel_facts["looks in"]:
            return os.path.join(os.path.dirname(wheel_facts["folder"]), *folder.split("/"), name)
    return name


def files_wanted(build, tensorflow_version, windows=False):
    """The names of the libraries that a TensorFlow with this build information opens."""
    cuda, cudnn = built_for(build, tensorflow_version)
    table = WINDOWS_LIBRARIES if windows else LINUX_LIBRARIES
    libraries_ = table.get(cuda) or table.get(cuda.split(".")[0])
    if not libraries_:
        return []
    named = [each.split("-") for each in libraries_.split()] + [["cudnn", cudnn.split(".")[0]]]
    return [("%s64_%s.dll" if windows else "lib%s.so.%s") % tuple(each) for each in named]


def built_for(build, tensorflow_version):
    """(CUDA, cuDNN) that a wheel was built for: its own word, and the tested minor version of cuDNN, which it omits."""
    tested = TESTED_WITH.get(".".join((tensorflow_version or "").split(".")[:2]), ("", ""))
    cuda, cudnn = str(build.get("cuda_version") or tested[0]), str(build.get("cudnn_version") or tested[1])
    cuda = re.sub(r"^64_(\d+)(\d)$", r"\1.\2", cuda)  # Windows wheels write 64_112 for 11.2
    cudnn = re.sub(r"^64_", "", cudnn)
    if "." not in cudnn and tested[1].split(".")[0] == cudnn:
        cudnn = tested[1]
    return ".".join(cuda.split(".")[:2]), cudnn


def trial(seconds):
    """Imports TensorFlow in a child, lists its GPUs and gives the first one a multiplication and a convolution."""
    settings = {
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_CPP_VMODULE": "dso_loader=1",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "PYTHONFAULTHANDLER": "1",
    }
    ended, out, err = run_child(TRY_TENSORFLOW, seconds=seconds, environment=settings)
    steps = json_lines(out, "gpu_check ")
    words = [line[:400] for line in err.splitlines() if line.strip() and not NOISE.search(line)]
    return {"ended": ended, "steps": steps, "stderr": words[:60] + words[60:][-40:]}


def gather(seconds=SECONDS):
    """All facts about this machine. A source that fails is noted under "failed" and stops no other."""
    facts = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "failed": {}}

    def collect(name, function, *arguments):
        try:
            facts[name] = function(*arguments)
        except Exception as error:  # whatever is broken on this machine, the rest is still worth knowing
            facts[name] = None
            facts["failed"][name] = "%s: %s" % (type(error).__name__, error)

    collect("system", system)
    collect("environment", environment)
    collect("packages", packages)
    collect("wheel", wheel)
    collect("driver", driver)
    collect("libraries", libraries, facts["wheel"], version_of(facts))
    collect("trial", trial, seconds)
    return facts


# ------------------------------------------------------------------------------------------------------- judging facts

# Finding: (what it says, what to do). The pages on this site have a heading for each.
WORDS = {
    "not-read": ("Could not read one source of facts ({name}).", "Report this line with your question."),
    "tensorflow-missing": (
        "This Python has no TensorFlow.",
        "Install it with this very Python ({python} -m pip install ...), or run this check with your program's Python.",
    ),
    "tensorflow-shadowed": ("`import tensorflow` finds {origin}, not the TensorFlow package.", "Rename that file."),
    "two-packages": (
        "{owners} are both installed and write into one folder; the one unpacked last overwrote the other.",
        "Uninstall both, then install `tensorflow` alone.",
    ),
    "rocm": ("This TensorFlow is built for AMD GPUs; this check knows NVIDIA's.", "Judge by what TensorFlow lists."),
    "windows": (
        "TensorFlow {version} on native Windows has no GPU code: 2.10 was the last that had.",
        "Use WSL2 and install tensorflow[and-cuda] there, or TensorFlow 2.10 with CUDA 11.2 and cuDNN 8.1 "
        "(Python 3.7 to 3.10). No CUDA installation can change this.",
    ),
    "cpu-only": (
        "This TensorFlow ({owners}) was built without CUDA.",
        "On Linux x86-64 or WSL2: uninstall it, then pip install 'tensorflow[and-cuda]'. "
        "On macOS there is no NVIDIA support.",
    ),
    "wheel": ("TensorFlow {version} is built for CUDA {cuda} and cuDNN {cudnn}.", None),
    "hidden": (
        "CUDA_VISIBLE_DEVICES={hidden!r} hides every GPU.",
        "Unset it, or set it to the numbers of the GPUs to use, such as 0.",
    ),
    "driver": ("Driver {number} supports CUDA {supports}.", None),
    "driver-died": (
        "The driver's own library ends its process: it {ended}.",
        "Reinstall the NVIDIA driver, then restart.",
    ),
    "wsl-path": (
        "The Windows driver's libcuda is in {folder}, but the loader does not look there.",
        "export LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH, before Python starts.",
    ),
    "wsl-driver": (
        "WSL2 has no libcuda: the Windows driver did not bring it.",
        "Install a current NVIDIA driver in Windows, run `wsl --update` and `wsl --shutdown`; "
        "install no Linux driver inside WSL.",
    ),
    "driver-missing": (
        "There is no NVIDIA driver: {file} cannot be opened{tool}.",
        "{container}Install the NVIDIA driver ({oldest} or newer), then restart. CUDA itself need not be installed.",
    ),
    "driver-mismatch": (
        "The driver's kernel part and its library are of different versions.",
        "Restart. If that does not help, reinstall the driver; in a container, remove a second libcuda (cuda-compat).",
    ),
    "driver-old": (
        "Driver {number} is too old: CUDA {cuda} needs {oldest} or newer.",
        "Install a newer NVIDIA driver, then restart.",
    ),
    "no-device": ("The driver is there but sees no GPU ({why}).", "{cure}"),
    "management": (
        "libnvidia-ml.so.1, a part of the driver, cannot be opened; "
        "TensorFlow 2.21 lists no GPU without it and says nothing.",
        "In a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility. Elsewhere: reinstall the driver.",
    ),
    "libraries": ("All {count} CUDA libraries that it opens can be opened.", None),
    "off-path": (
        "Installed, but not where the loader looks: {names}.",
        'Put the nvidia/*/lib folders on LD_LIBRARY_PATH before Python starts: eval "$(python gpu_check.py --export)".',
    ),
    "library-broken": ("Found, but cannot be opened: {name}.", "Install the library that the message names."),
    "libraries-missing": (
        "The loader cannot find: {names}.",
        "{cure} Another CUDA version does not stand in for these names.",
    ),
    "other-cuda": (
        "{package} is for CUDA {other}; this TensorFlow uses CUDA {cuda} and does not open it.",
        "It does no harm by itself; pip install 'tensorflow[and-cuda]' brings the right ones.",
    ),
    "cudnn-fits": ("cuDNN {have} fits (built with {want}).", None),
    "cudnn": (
        "cuDNN {have} is loaded; this TensorFlow is built with {want} and takes the same major version, "
        "and no older minor one.",
        "{cure}",
    ),
    "kernels": ("The wheel holds machine code for the {gpu}.", None),
    "gpu-new": (
        "The wheel holds no machine code for the {gpu}: the driver must compile every kernel at its first use.",
        "Let the first run take its time and keep what it compiled (CUDA_CACHE_MAXSIZE=4294967296).{reports}",
    ),
    "gpu-old": (
        "The wheel holds no code that the {gpu} can run.",
        "Use an older TensorFlow whose build information lists this card.",
    ),
    "zlibwapi": (
        "cuDNN cannot find zlibwapi.dll and ends the process.",
        "Put the 64-bit zlibwapi.dll into a folder on PATH, such as CUDA's bin folder, and start again.",
    ),
    "import-failed": (
        "TensorFlow cannot be imported.",
        "Read the last line of its traceback: it names the package or library.",
    ),
    "child-died": (
        "TensorFlow's process {ended} during {doing}, with no Python exception.",
        "The cause is what is marked above; if nothing is, its last words are the lead. Then compare with the "
        "version table, and reinstall driver and CUDA packages together.",
    ),
    "operation-failed": (
        "A GPU is listed, but {doing} failed: {type}.",
        "The cause is what is marked above; if nothing is, its message is the lead.",
    ),
    "wrong-result": (
        "The GPU is listed, but its results are wrong or were computed on the CPU.",
        "Reinstall the driver; if it stays, suspect the card.",
    ),
    "not-listed": (
        "TensorFlow lists no GPU, and nothing above explains it.",
        "Read the child's messages (--json: facts, trial, stderr).",
    ),
    "works": ("A multiplication and a convolution on {gpu} gave the right results.", None),
}

OWNERS = "tensorflow tensorflow-cpu tensorflow-gpu tf-nightly tensorflow-cpu-aws tensorflow-macos".split()
NO_DEVICE_FILE = (
    "There is no /dev/nvidia0 here: in a container, start it with --gpus all; "
    "on a host, load the kernel module (sudo modprobe nvidia) or reinstall the driver."
)
DOING = {
    "import": "the import of TensorFlow",
    "list": "the listing of GPUs",
    "listed": "the preparation of the GPU",
    "multiply": "the first multiplication on the GPU",
    "multiplied": "the first multiplication on the GPU",
    "convolve": "the first convolution on the GPU (cuDNN)",
    "convolved": "the first convolution on the GPU (cuDNN)",
}


class Findings(list):
    """Findings in causal order: dicts of level ("stops", "warns", "fine"), code, says, do, source."""

    def add(self, level, code, source, **values):
        says, do = WORDS[code]
        self.append(
            {
                "level": level,
                "code": code,
                "says": says.format(**values),
                "do": do and do.format(**values),
                "source": source,
            }
        )

    def has(self, *levels_or_codes):
        return any(each["level"] in levels_or_codes or each["code"] in levels_or_codes for each in self)


def numbers(version):
    """A version as a tuple that can be compared: "8.9.4" becomes (8, 9, 4)."""
    return tuple(int(part) for part in re.findall(r"\d+", version or "")[:3])


def version_of(facts):
    """The version of TensorFlow: of the one that was imported, else of the one that is installed."""
    steps = (facts.get("trial") or {}).get("steps") or []
    known = facts.get("packages") or {}
    imported = next((step["version"] for step in steps if "version" in step), None)
    return imported or next((known[name] for name in OWNERS + ["tensorflow-intel"] if name in known), None)


def judge(facts):
    """Returns the Findings for a machine. Looks at nothing but `facts`."""
    found = Findings()
    wheel_, known = facts.get("wheel") or {}, facts.get("packages") or {}
    python = (facts.get("system") or {}).get("executable", "python")
    for name, error in (facts.get("failed") or {}).items():
        found.add("warns", "not-read", error, name=name)
    if not wheel_.get("found"):
        found.add("stops", "tensorflow-missing", "find_spec('tensorflow') under %s" % python, python=python)
        return found
    if not wheel_.get("build") and not wheel_["origin"].endswith("__init__.py"):
        found.add("stops", "tensorflow-shadowed", wheel_["origin"], origin=wheel_["origin"])
        return found
    owners = [name for name in OWNERS if name in known]
    if len(owners) > 1 and not {"tensorflow-macos", "tensorflow-cpu-aws"} & set(owners):
        found.add("warns", "two-packages", "installed packages", owners=" and ".join(owners))
    if (wheel_.get("build") or {}).get("is_cuda_build"):
        judge_driver(facts, found)
        judge_libraries(facts, found)
        judge_kernels(facts, found)
    else:
        judge_other_build(facts, found, owners)
    judge_trial(facts.get("trial") or {}, found)
    if found.has("works"):  # what looked like an obstacle was none
        for each in found:
            each["level"] = "warns" if each["level"] == "stops" else each["level"]
    return found


def judge_other_build(facts, found, owners):
    wheel_, version = facts["wheel"], version_of(facts)
    if (wheel_.get("build") or {}).get("is_rocm_build"):
        found.add("warns", "rocm", wheel_.get("source"))
    elif (facts.get("system") or {}).get("system") == "Windows" and numbers(version) >= (2, 11):
        found.add("stops", "windows", wheel_.get("source"), version=version)
    else:
        owners = " and ".join(owners) or "of unknown origin"
        found.add("stops", "cpu-only", wheel_.get("source") or wheel_["origin"], owners=owners)


def judge_driver(facts, found):
    """Whether a GPU is visible, and a driver there that is new enough."""
    where, driver_ = facts.get("system") or {}, facts.get("driver") or {}
    windows, version = where.get("system") == "Windows", version_of(facts)
    cuda, cudnn = built_for(facts["wheel"]["build"], version)
    found.add("fine", "wheel", facts["wheel"].get("source"), version=version, cuda=cuda, cudnn=cudnn)

    hidden = (facts.get("environment") or {}).get("CUDA_VISIBLE_DEVICES")
    tool, library = driver_.get("tool") or {}, driver_.get("library") or {}
    first, cards = (hidden or "").split(",")[0].strip(), tool.get("gpus") or []  # nvidia-smi lists hidden ones too
    none = library.get("init") == 100 or library.get("devices") == []
    unknown = bool(cards) and none and not (first.isdigit() and int(first) < len(cards))
    if hidden is not None and (first == "" or first.startswith("-1") or unknown):
        found.add("stops", "hidden", "environment", hidden=hidden)
    if not driver_:
        return
    number, supports = tool.get("driver") or driver_.get("kernel module"), library.get("cuda") or tool.get("cuda")
    oldest = (OLDEST_DRIVER.get(cuda) or OLDEST_DRIVER.get(cuda.split(".")[0]) or ("0", "0"))[1 if windows else 0]
    file, code = library.get("library", "libcuda.so.1"), library.get("init")
    source = tool.get("path") or file
    if library.get("ended"):
        found.add("stops", "driver-died", file, ended=library["ended"])
    elif not library.get("opened") and where.get("wsl"):
        reached = "wsl-path" if driver_.get("wsl library") else "wsl-driver"
        found.add("stops", reached, library.get("error") or file, folder=WSL_FOLDER)
    elif not library.get("opened"):
        container = "Start the container with --gpus all: the driver belongs to the host. There: "
        found.add(
            "stops",
            "driver-missing",
            library.get("error") or file,
            file=file,
            oldest=oldest,
            tool="" if tool else " and nvidia-smi is not on PATH",
            container=container if where.get("container") else "",
        )
    elif code in (803, 804) or "version mismatch" in (tool.get("error") or ""):
        found.add("stops", "driver-mismatch", tool.get("error") or "cuInit returned %s" % code)
    elif numbers(number) < numbers(oldest) if number else numbers(supports)[:1] < numbers(cuda)[:1]:
        number = number or "for CUDA %s" % supports
        found.add("stops", "driver-old", source, number=number, cuda=cuda, oldest=oldest)
    elif code or tool.get("error") or library.get("devices") == []:
        why = "cuInit returned %s" % code if code else tool.get("error") or "it counts 0 devices"
        files = where.get("device files", True)
        if not found.has("hidden"):
            cure = "Check that the GPU is seated and powered, and restart." if files else NO_DEVICE_FILE
            found.add("stops", "no-device", source, why=why, cure=cure)
    else:
        found.add("fine", "driver", source, number=number or "(version unknown)", supports=supports)
        if library.get("management") is False and not windows and numbers(version) >= (2, 18):
            level = "stops" if numbers(version) >= (2, 21) else "warns"
            found.add(level, "management", "dlopen libnvidia-ml.so.1")


def judge_libraries(facts, found):
    """Whether the CUDA libraries can be opened under the names that this TensorFlow uses, and whether cuDNN fits."""
    wheel_, version = facts["wheel"], version_of(facts)
    cuda, cudnn = built_for(wheel_["build"], version)
    opened = facts.get("libraries") or []
    missing = [each for each in opened if not each["opened"]]
    installed = [name for files in wheel_.get("cuda folders", {}).values() for name in files]
    beside = [each["name"] for each in missing if each["name"] in installed]
    broken = [each for each in missing if each["error"] and each["name"] not in each["error"]]
    if beside:
        folder = os.path.join(os.path.dirname(wheel_["folder"]), "nvidia")
        source = "%s, against the RUNPATH of libtensorflow_framework.so.2" % folder
        found.add("stops", "off-path", source, names=", ".join(beside))
    elif broken:
        found.add("stops", "library-broken", broken[0]["error"], name=broken[0]["name"])
    elif missing:
        cure = "pip install 'tensorflow[and-cuda]==%s'." % version
        if numbers(version) < (2, 14):
            cure = "Install CUDA %s and cuDNN %s." % (cuda, cudnn)
        names = ", ".join(each["name"] for each in missing)
        found.add("stops", "libraries-missing", missing[0]["error"] or "dlopen", names=names, cure=cure)
    elif opened:
        found.add("fine", "libraries", "dlopen, in a child process", count=len(opened))

    dnn = next((each for each in opened if "cudnn" in each["name"] and each["version"]), None)
    if dnn:
        have, want, path = numbers(dnn["version"])[:2], numbers(cudnn)[:2], dnn["path"] or dnn["name"]
        folders = (facts.get("environment") or {}).get("LD_LIBRARY_PATH", "").split(":")
        cure = "Install cuDNN %s or newer of the same major version." % cudnn
        if any(folder and path.startswith(folder) for folder in folders):
            cure = "Take its folder off LD_LIBRARY_PATH: that is searched before TensorFlow's own folders."
        if path.startswith(os.path.join(os.path.dirname(wheel_.get("folder") or ""), "nvidia", "cudnn")):
            cure = "pip install 'nvidia-cudnn-cu%s==%s.*'; if another package, such as PyTorch, pins the older one, "
            cure = (cure + "give each its own environment.") % (cuda.split(".")[0], ".".join(cudnn.split(".")[:2]))
        fits = have[:1] == want[:1] and have >= want
        values = {"have": dnn["version"], "want": cudnn, "cure": cure}
        found.add("fine" if fits else "stops", "cudnn-fits" if fits else "cudnn", path, **values)

    for package in sorted(facts.get("packages") or {}):
        other = re.search(r"^nvidia-.*-cu(\d\d)$", package)
        if other and other.group(1) != cuda.split(".")[0]:
            named = "%s %s" % (package, facts["packages"][package])
            found.add("warns", "other-cuda", "installed packages", package=named, other=other.group(1), cuda=cuda)
            break


def judge_kernels(facts, found):
    """Whether the wheel has machine code for the GPU, or only PTX that the driver must compile, or neither.

    TensorFlow itself takes sm_89 as machine code and compute_90 as machine code and PTX.
    """
    driver_ = facts.get("driver") or {}
    has = facts["wheel"]["build"].get("cuda_compute_capabilities") or []
    parsed = [(each, re.match(r"(?:sm|compute)_(\d+)(\d)", each)) for each in has]
    machine = [tuple(map(int, match.groups())) for each, match in parsed if match]
    ptx = [tuple(map(int, match.groups())) for each, match in parsed if match and each.startswith("compute_")]
    for gpu in (driver_.get("tool") or {}).get("gpus") or (driver_.get("library") or {}).get("devices") or []:
        mine = numbers(gpu.get("capability"))[:2]
        if not mine or not machine:
            continue
        source = "cuda_compute_capabilities: %s" % " ".join(has)
        name = "%s (compute capability %s)" % (gpu.get("name"), gpu["capability"])
        if any(each[0] == mine[0] and each <= mine for each in machine):
            found.add("fine", "kernels", source, gpu=name)
        elif ptx and mine >= min(ptx):
            reports = " For 12.0 users report CUDA_ERROR_INVALID_PTX instead: then take a build made for the card."
            found.add("warns", "gpu-new", source, gpu=name, reports=reports if mine >= (12, 0) else "")
        else:
            found.add("stops", "gpu-old", source, gpu=name)


def judge_trial(trial_, found):
    """What TensorFlow itself did in the child: how far it came, and how it ended."""
    steps, words = trial_.get("steps") or [], trial_.get("stderr") or []
    if not steps:
        if trial_.get("ended"):
            found.add("stops", "child-died", "child process", ended=trial_["ended"], doing="the start of Python")
        return
    raised = [index for index, step in enumerate(steps) if step["step"] == "raised"]
    gpus = next((step["gpus"] for step in steps if step["step"] == "listed"), [])
    if any("zlibwapi" in line for line in words):
        found.add("stops", "zlibwapi", "stderr of the child")
    if trial_.get("ended"):
        last = words[-1] if words else "it said nothing"
        if steps[-1]["step"] == "import" and any(line.startswith("Traceback") for line in words):
            found.add("stops", "import-failed", last)
        else:
            fatal = next((line for line in words if FATAL.match(line)), last)
            found.add(
                "stops", "child-died", fatal, ended=trial_["ended"], doing=DOING.get(steps[-1]["step"], "its end")
            )
    elif raised:
        failed, before = steps[raised[0]], steps[raised[0] - 1]["step"]
        source = " ".join(failed["text"].split())[:300]
        found.add("stops", "operation-failed", source, doing=DOING.get(before, "its use"), type=failed["type"])
    elif gpus:
        done = [step for step in steps if step["step"] in ("multiplied", "convolved")]
        if len(done) == 2 and all(step["right"] and "GPU" in step["device"] for step in done):
            found.add("fine", "works", "TensorFlow in a child process", gpu=gpus[0])
        else:
            found.add("stops", "wrong-result", json.dumps(done))
    elif not found.has("stops"):
        said = next((line for line in words if re.search(r"cuInit|dlopen|Could not load", line)), "stderr of the child")
        found.add("stops", "not-listed", said)


def verdict(findings):
    """{"usable": bool, "says": sentence}: usable only if a GPU did its work in the child."""
    if any(each["code"] == "works" for each in findings):
        return {"usable": True, "says": "TensorFlow uses the GPU."}
    stops = [each["says"] for each in findings if each["level"] == "stops"]
    first = stops[0] if stops else "No operation was tried on a GPU."
    return {"usable": False, "says": "TensorFlow does not use a GPU. First cause: " + first}


# ----------------------------------------------------------------------------------------------------------- reporting


def report(facts, findings):
    """The report as text."""
    where = facts.get("system") or {}
    name = "WSL2" if where.get("wsl") else where.get("system")
    lines = [
        "TensorFlow %s, Python %s, %s %s"
        % (version_of(facts) or "not found", where.get("python"), name, where.get("machine")),
        "",
        verdict(findings)["says"],
        "",
    ]
    marks = {"stops": " x ", "warns": " ! ", "fine": "ok "}
    for each in findings:
        lines.append("%s%s [%s]" % (marks[each["level"]], each["says"], each["code"]))
        if each["do"]:
            lines.append("      do:   " + each["do"])
        if each["source"]:
            lines.append("      from: " + str(each["source"]))
    return "\n".join(lines)


def export_line(wheel_facts):
    """The shell line that puts the CUDA libraries beside TensorFlow first on LD_LIBRARY_PATH; "" if there are none."""
    beside = os.path.dirname(wheel_facts.get("folder") or "")
    folders = [
        os.path.join(beside, *folder.split("/"))
        for folder in wheel_facts.get("cuda folders", {})
        if folder.endswith("/lib")
    ]
    return (
        "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" % shlex.quote(":".join(folders))
        if folders
        else ""
    )


def main():
    parser = argparse.ArgumentParser(description="Say why TensorFlow does or does not use the GPU.")
    parser.add_argument("--json", action="store_true", help="print facts, findings and verdict as JSON")
    parser.add_argument("--read", metavar="FILE", help="judge facts that --json saved instead of this machine")
    parser.add_argument(
        "--seconds", type=int, default=SECONDS, help="how long TensorFlow may take in its child (%(default)s)"
    )
    parser.add_argument(
        "--export", action="store_true", help="print the line that puts pip's CUDA libraries on LD_LIBRARY_PATH"
    )
    options = parser.parse_args()
    if options.export:
        line = export_line(wheel())
        print(line or "# no nvidia/*/lib folders beside TensorFlow: pip install 'tensorflow[and-cuda]' brings them")
        return 0 if line else 1
    if options.read:
        with open(options.read, encoding="utf-8") as file:
            saved = json.load(file)
        facts = saved.get("facts", saved)
        if facts.get("schema") != SCHEMA or facts.get("schema_version") != SCHEMA_VERSION:
            sys.exit("%s holds no facts of this program in schema version %d" % (options.read, SCHEMA_VERSION))
    else:
        if not options.json:
            print(
                "Asking the driver, the libraries and TensorFlow; this takes some seconds, on a new GPU minutes.",
                file=sys.stderr,
            )
        facts = gather(options.seconds)
    findings = judge(facts)
    decided = verdict(findings)
    if options.json:
        print(json.dumps({"verdict": decided, "findings": findings, "facts": facts}, indent=1))
    else:
        print(report(facts, findings))
    return 0 if decided["usable"] else 1


if __name__ == "__main__":
    sys.exit(main())
