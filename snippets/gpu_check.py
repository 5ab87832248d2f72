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

# What each TensorFlow was tested with: (CUDA, cuDNN). The page version-table has the source of each cell.
TESTED_WITH = {
    "2.21": ("12.5", "9.3"), "2.20": ("12.5", "9.3"), "2.19": ("12.5", "9.3"), "2.18": ("12.5", "9.3"),
    "2.17": ("12.3", "8.9"), "2.16": ("12.3", "8.9"), "2.15": ("12.2", "8.9"), "2.14": ("11.8", "8.7"),
    "2.13": ("11.8", "8.6"), "2.12": ("11.8", "8.6"), "2.11": ("11.2", "8.1"), "2.10": ("11.2", "8.1"),
    "2.9": ("11.2", "8.1"), "2.8": ("11.2", "8.1"), "2.7": ("11.2", "8.1"), "2.6": ("11.2", "8.1"),
    "2.5": ("11.2", "8.1"), "2.4": ("11.0", "8.0"), "2.3": ("10.1", "7.6"), "2.2": ("10.1", "7.6"),
    "2.1": ("10.1", "7.6"), "2.0": ("10.0", "7.4"),
}  # fmt: skip

# The oldest driver for each CUDA, on Linux and on Windows: NVIDIA, "CUDA Compatibility", minor version compatibility.
OLDEST_DRIVER = {"13": ("580", "580"), "12": ("525", "525"), "11": ("450", "450"), "10.1": ("418.39", "418.96"), "10.0": ("410.48", "411.31")}

# The files each CUDA's libraries are called by, in the order in which TensorFlow opens them. {dnn}: the major version of cuDNN.
LINUX_FILES = {
    "13": "libcudart.so.13 libcublas.so.13 libcublasLt.so.13 libcufft.so.12 libcusolver.so.12 libcusparse.so.12 libcudnn.so.{dnn}",
    "12": "libcudart.so.12 libcublas.so.12 libcublasLt.so.12 libcufft.so.11 libcusolver.so.11 libcusparse.so.12 libcudnn.so.{dnn}",
    "11": "libcudart.so.11.0 libcublas.so.11 libcublasLt.so.11 libcufft.so.10 libcusolver.so.11 libcusparse.so.11 libcudnn.so.{dnn}",
    "11.0": "libcudart.so.11.0 libcublas.so.11 libcublasLt.so.11 libcufft.so.10 libcusolver.so.10 libcusparse.so.11 libcudnn.so.{dnn}",
    "10.1": "libcudart.so.10.1 libcublas.so.10 libcufft.so.10 libcurand.so.10 libcusolver.so.10 libcusparse.so.10 libcudnn.so.{dnn}",
    "10.0": "libcudart.so.10.0 libcublas.so.10.0 libcufft.so.10.0 libcurand.so.10.0 libcusolver.so.10.0 libcusparse.so.10.0 libcudnn.so.{dnn}",
}
WINDOWS_FILES = {
    "11": "cudart64_110.dll cublas64_11.dll cublasLt64_11.dll cufft64_10.dll cusolver64_11.dll cusparse64_11.dll cudnn64_{dnn}.dll",
    "11.0": "cudart64_110.dll cublas64_11.dll cublasLt64_11.dll cufft64_10.dll cusolver64_10.dll cusparse64_11.dll cudnn64_{dnn}.dll",
    "10.1": "cudart64_101.dll cublas64_10.dll cufft64_10.dll curand64_10.dll cusolver64_10.dll cusparse64_10.dll cudnn64_{dnn}.dll",
    "10.0": "cudart64_100.dll cublas64_100.dll cufft64_100.dll curand64_100.dll cusolver64_100.dll cusparse64_100.dll cudnn64_{dnn}.dll",
}

WINDOWS_EXITS = {
    0xC0000005: "access violation (0xC0000005)",
    0xC0000409: "fail fast, which is what abort() does on Windows (0xC0000409)",
    0xC000001D: "illegal instruction (0xC000001D)",
    0xC0000135: "a DLL was not found (0xC0000135)",
}

# Lines of TensorFlow's stderr that say nothing about the GPU, and the list of modules that faulthandler appends.
NOISE = re.compile(r"oneDNN|cpu_feature_guard|To enable the following|InitializeLog|NUMA node|Unable to register cu|Could not find TensorRT|^Extension modules:")
FATAL = re.compile(r"F\d{4} |\S+ \S+: F ")

# ---------------------------------------------------------------------------------------------- programs of the children

OPEN_LIBRARIES = r"""
import ctypes, json, os, sys
wanted = json.loads(sys.argv[1])          # [[name, path to open], ...]
versions = {"cudart": "cudaRuntimeGetVersion", "cudnn": "cudnnGetVersion"}

def version(stem, library):
    if stem == "cudart":
        number = ctypes.c_int()
        return None if library.cudaRuntimeGetVersion(ctypes.byref(number)) else "%d.%d" % (number.value // 1000, number.value % 1000 // 10)
    read, parts = getattr(library, stem + "GetProperty"), []
    for which in range(3):
        number = ctypes.c_int()
        if read(which, ctypes.byref(number)):
            return None
        parts.append(str(number.value))
    return ".".join(parts)

def loaded_from(name):
    try:
        return next((line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if os.path.basename(line.strip()).startswith(name)), None)
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
            device, major, minor, text = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
            cuda.cuDeviceGet(ctypes.byref(device), index)
            cuda.cuDeviceGetName(text, 100, device)
            cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
            cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
            found["devices"].append({"name": text.value.decode(errors="replace"), "capability": "%d.%d" % (major.value, minor.value)})
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

# ------------------------------------------------------------------------------------------------------ collecting facts


def run_child(program, *arguments, seconds=60, environment=None):
    """Runs a program text in a new Python. Returns (how it ended or None if it ran to its end, stdout, stderr)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {}))
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
    names = "CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES TF_CPP_MIN_LOG_LEVEL CUDA_HOME CUDA_PATH CONDA_PREFIX VIRTUAL_ENV"
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
    for path in sorted(glob.glob(os.path.join(beside, "nvidia", "*", "lib")) + glob.glob(os.path.join(beside, "nvidia", "*", "bin"))):
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
    tool = shutil.which("nvidia-smi") or next((path for path in [os.path.join(WSL_FOLDER, "nvidia-smi")] if os.path.exists(path)), None)
    if tool:
        found["tool"] = ask_tool(tool)
    for path in ("/proc/driver/nvidia/version",):
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                match = re.search(r"(\d{3}\.[\d.]+)", file.read())
            found["kernel module"] = match.group(1) if match else None
    found["wsl library"] = os.path.exists(os.path.join(WSL_FOLDER, "libcuda.so.1"))
    ended, out, err = run_child(ASK_DRIVER)
    lines = json_lines(out)
    found["library"] = dict(lines[-1] if lines else {"opened": False}, ended=ended)
    return found


def ask_tool(tool):
    """nvidia-smi's answer: driver version, its CUDA version, and the GPUs."""
    answer = {"path": tool, "driver": None, "cuda": None, "gpus": [], "error": None}
    run = subprocess.run([tool], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=60)
    text = run.stdout.decode(errors="replace")
    for key, pattern in (("driver", r"Driver Version:\s*([\d.]+)"), ("cuda", r"CUDA Version:\s*([\d.]+)")):
        match = re.search(pattern, text)
        answer[key] = match.group(1) if match else None
    if run.returncode:
        answer["error"] = " ".join(text.split())[:300] or "exit code %d" % run.returncode
        return answer
    for fields in ("name,compute_cap", "name"):  # an old nvidia-smi does not know compute_cap
        run = subprocess.run([tool, "--query-gpu=" + fields, "--format=csv,noheader"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        if run.returncode == 0:
            for line in run.stdout.decode(errors="replace").splitlines():
                parts = [part.strip() for part in line.split(",")]
                answer["gpus"].append({"name": parts[0], "capability": parts[1] if len(parts) > 1 else None})
            break
    return answer


def libraries(wheel_facts, tensorflow_version):
    """Opens each CUDA library that this TensorFlow opens, in a child, where TensorFlow would find it; notes path and version."""
    build = (wheel_facts or {}).get("build") or {}
    if not build.get("is_cuda_build"):
        return []
    wanted = [[name, where_it_is(name, wheel_facts)] for name in files_wanted(build, tensorflow_version, os.name == "nt")]
    ended, out, err = run_child(OPEN_LIBRARIES, json.dumps(wanted))
    lines = json_lines(out)
    found = [line for line in lines if "name" in line]
    if ended and lines and "opening" in lines[-1]:
        found.append({"name": lines[-1]["opening"], "opened": False, "path": None, "version": None, "error": "its process " + ended})
    return found


def where_it_is(name, wheel_facts):
    """What to open for a library's name: a path where TensorFlow would take it from there, else the name. LD_LIBRARY_PATH comes first."""
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
    table = WINDOWS_FILES if windows else LINUX_FILES
    names = table.get(cuda) or table.get(cuda.split(".")[0], "")
    return names.format(dnn=cudnn.split(".")[0]).split()


def built_for(build, tensorflow_version):
    """(CUDA, cuDNN) that a wheel was built for: its own word, and the tested versions where it gives no minor version of cuDNN."""
    tested = TESTED_WITH.get(".".join((tensorflow_version or "").split(".")[:2]), ("", ""))
    cuda, cudnn = str(build.get("cuda_version") or tested[0]), str(build.get("cudnn_version") or tested[1])
    cuda = re.sub(r"^64_(\d+)(\d)$", r"\1.\2", cuda)  # Windows wheels write 64_112 for 11.2
    cudnn = re.sub(r"^64_", "", cudnn)
    if "." not in cudnn and tested[1].split(".")[0] == cudnn:
        cudnn = tested[1]
    return ".".join(cuda.split(".")[:2]), cudnn


def trial(seconds):
    """Imports TensorFlow in a child, lists its GPUs and gives the first one a multiplication and a convolution."""
    settings = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "dso_loader=1", "TF_FORCE_GPU_ALLOW_GROWTH": "true", "PYTHONFAULTHANDLER": "1"}
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


def version_of(facts):
    """The version of the TensorFlow that is installed, by its package; of the one that was imported, if that is known."""
    imported = next((step["version"] for step in ((facts.get("trial") or {}).get("steps") or []) if "version" in step), None)
    known = facts.get("packages") or {}
    names = ("tensorflow", "tensorflow-intel", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tensorflow-macos", "tensorflow-cpu-aws")
    return imported or next((known[name] for name in names if name in known), None)


# ---------------------------------------------------------------------------------------------------------- judging facts


def numbers(version):
    """A version as a tuple that can be compared: "8.9.4" becomes (8, 9, 4)."""
    return tuple(int(part) for part in re.findall(r"\d+", version or "")[:3])


def judge(facts):
    """The findings in causal order: dicts of level ("stops", "warns", "fine"), code, says, do, source. Looks at nothing but `facts`."""
    found = []

    def finding(level, code, says, do, source):
        found.append({"level": level, "code": code, "says": says, "do": do, "source": source})

    where, known = facts.get("system") or {}, facts.get("packages") or {}
    wheel_, trial_ = facts.get("wheel") or {}, facts.get("trial") or {}
    version, build = version_of(facts), wheel_.get("build") or {}
    windows = where.get("system") == "Windows"

    for name, error in (facts.get("failed") or {}).items():
        finding("warns", "not-read", "Could not read one source of facts (%s)." % name, "Report this line with your question.", error)

    if not wheel_.get("found"):
        finding("stops", "tensorflow-missing", "This Python has no TensorFlow.",
                "Install it with this very Python: %s -m pip install ..., or run this check with the Python that your program uses." % where.get("executable", "python"),
                "find_spec('tensorflow') under %s" % where.get("executable"))  # fmt: skip
        return found
    if build == {} and wheel_.get("origin") and not wheel_["origin"].endswith("__init__.py"):
        finding("stops", "tensorflow-shadowed", "`import tensorflow` finds %s, which is not the TensorFlow package." % wheel_["origin"], "Rename that file.", wheel_["origin"])
        return found
    owners = [name for name in ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tensorflow-cpu-aws", "tensorflow-macos") if name in known]
    if len(owners) > 1 and not {"tensorflow-macos", "tensorflow-cpu-aws"} & set(owners):
        finding("warns", "two-packages", "%s are both installed and write into one folder; which of them you get is chance." % " and ".join(owners),
                "Uninstall both, then install `tensorflow` alone.", "installed packages")  # fmt: skip

    if not build.get("is_cuda_build"):
        if build.get("is_rocm_build"):
            finding("warns", "rocm", "This TensorFlow is built for AMD GPUs; this check knows NVIDIA's.", "Judge by what TensorFlow itself lists.", wheel_.get("source"))
        elif windows and numbers(version) >= (2, 11):
            finding("stops", "windows", "TensorFlow %s on native Windows has no GPU code: 2.10 was the last that had." % version,
                    "Use WSL2 and install tensorflow[and-cuda] there, or TensorFlow 2.10 with CUDA 11.2 and cuDNN 8.1 (Python 3.7 to 3.10). No CUDA installation can change this.",
                    wheel_.get("source"))  # fmt: skip
        else:
            finding("stops", "cpu-only", "This TensorFlow%s was built without CUDA." % (" (%s)" % ", ".join(owners) if owners else ""),
                    "On Linux x86-64 or WSL2: uninstall it, then pip install 'tensorflow[and-cuda]'. On macOS there is no NVIDIA support.", wheel_.get("source"))  # fmt: skip
    else:
        _judge_cuda(facts, finding, version, build, windows)
    _judge_trial(trial_, finding, any(each["level"] == "stops" for each in found))
    if any(each["code"] == "works" for each in found):  # what looked like an obstacle was none
        found = [dict(each, level="warns") if each["level"] == "stops" else each for each in found]
    return found


def _judge_cuda(facts, finding, version, build, windows):
    """What must fit for a wheel that was built with CUDA: GPU visible, driver, libraries, cuDNN, the GPU's age."""
    where, environment_, known = facts.get("system") or {}, facts.get("environment") or {}, facts.get("packages") or {}
    wheel_, driver_ = facts.get("wheel") or {}, facts.get("driver") or {}
    cuda, cudnn = built_for(build, version)
    finding("fine", "wheel", "TensorFlow %s is built for CUDA %s and cuDNN %s." % (version, cuda, cudnn), None, wheel_.get("source"))

    hidden = environment_.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and (hidden.strip() == "" or hidden.strip().startswith("-1")):
        finding("stops", "hidden", "CUDA_VISIBLE_DEVICES=%r hides every GPU." % hidden, "Unset it, or set it to the numbers of the GPUs to use, such as 0.", "environment")

    tool, library = driver_.get("tool") or {}, driver_.get("library") or {}
    number = tool.get("driver") or driver_.get("kernel module")
    oldest = OLDEST_DRIVER.get(cuda) or OLDEST_DRIVER.get(cuda.split(".")[0]) or ("0", "0")
    oldest = oldest[1 if windows else 0]
    code, ready = library.get("init"), False
    name = library.get("library", "libcuda.so.1")
    if library.get("ended"):
        finding("stops", "driver-died", "The driver's own library ends its process (%s)." % library["ended"], "Reinstall the NVIDIA driver, then restart.", name)
    elif not library.get("opened") and where.get("wsl") and driver_.get("wsl library"):
        finding("stops", "wsl-path", "The Windows driver's libcuda is in %s, but the loader does not look there." % WSL_FOLDER,
                "export LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH, before Python starts." % WSL_FOLDER, library.get("error"))  # fmt: skip
    elif not library.get("opened") and where.get("wsl"):
        finding("stops", "wsl-driver", "WSL2 has no libcuda: the Windows driver did not bring it.",
                "Install a current NVIDIA driver in Windows, run `wsl --update` and `wsl --shutdown`; install no Linux driver inside WSL.", library.get("error"))  # fmt: skip
    elif not library.get("opened"):
        says = "There is no NVIDIA driver: %s cannot be opened%s." % (name, "" if tool else " and nvidia-smi is not on PATH")
        do = "Install the NVIDIA driver (%s or newer), then restart. CUDA itself does not have to be installed." % oldest
        if where.get("container"):
            do = "Start the container with the GPU (docker run --gpus all ...): the driver belongs to the host. On the host: " + do
        finding("stops", "driver-missing", says, do, library.get("error"))
    elif code in (803, 804) or "version mismatch" in (tool.get("error") or ""):
        finding("stops", "driver-mismatch", "The driver's kernel part and its library are of different versions.",
                "Restart. If that does not help, reinstall the driver; in a container, remove a second libcuda (cuda-compat) from the image.",
                tool.get("error") or "cuInit returned %s" % code)  # fmt: skip
    elif library.get("cuda") and number is None and numbers(library["cuda"])[:1] < numbers(cuda)[:1]:
        finding("stops", "driver-old", "The driver supports CUDA %s; this TensorFlow needs CUDA %s." % (library["cuda"], cuda), "Install driver %s or newer." % oldest, "cuDriverGetVersion")
    elif number and numbers(number) < numbers(oldest):
        finding("stops", "driver-old", "Driver %s is too old: CUDA %s needs %s or newer." % (number, cuda, oldest), "Install a newer NVIDIA driver, then restart.", tool.get("path") or "/proc/driver/nvidia/version")
    elif code or tool.get("error") or library.get("devices") == []:
        says = "The driver is there but sees no GPU (%s)." % ("cuInit returned %s" % code if code else tool.get("error") or "it counts 0 devices")
        do = "Check that the GPU is seated and powered, and restart."
        if where.get("container") or not where.get("device files", True):
            do = "There is no /dev/nvidia0 here: in a container, start it with --gpus all; on a host, load the kernel module (sudo modprobe nvidia) or reinstall the driver."
        if hidden is None:
            finding("stops", "no-device", says, do, tool.get("path") or name)
    else:
        ready = True
        finding("fine", "driver", "Driver %s supports CUDA %s." % (number or "(version unknown)", tool.get("cuda") or library.get("cuda")), None, tool.get("path") or name)
    if ready and library.get("management") is False and not windows and numbers(version) >= (2, 18):
        finding("stops" if numbers(version) >= (2, 21) else "warns", "management", "libnvidia-ml.so.1, a part of the driver, cannot be opened; TensorFlow 2.21 lists no GPU without it and says nothing.",
                "In a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility. Elsewhere: reinstall the driver.", "dlopen libnvidia-ml.so.1")  # fmt: skip

    _judge_libraries(facts, finding, version, cuda, cudnn)
    _judge_kernels(facts, finding, build, tool.get("gpus") or library.get("devices") or [])
    for package in sorted(known):
        other = re.search(r"^nvidia-.*-cu(\d\d)$", package)
        if other and other.group(1) != cuda.split(".")[0] and not windows:
            finding("warns", "other-cuda", "%s %s is for CUDA %s; this TensorFlow uses CUDA %s and does not open it." % (package, known[package], other.group(1), cuda.split(".")[0]),
                    "It does no harm by itself; pip install 'tensorflow[and-cuda]' brings the right ones.", "installed packages")  # fmt: skip
            break


def _judge_libraries(facts, finding, version, cuda, cudnn):
    found, wheel_, environment_ = facts.get("libraries") or [], facts.get("wheel") or {}, facts.get("environment") or {}
    installed = [name for files in wheel_.get("cuda folders", {}).values() for name in files]
    missing = [each for each in found if not each["opened"]]
    beside = [each["name"] for each in missing if each["name"] in installed]
    broken = [each for each in missing if each["error"] and each["name"] not in each["error"]]
    listed = ", ".join(each["name"] for each in missing)
    if beside:
        finding("stops", "off-path", "Installed, but not where the loader looks: %s." % ", ".join(beside),
                'Put the nvidia/*/lib folders on LD_LIBRARY_PATH before Python starts: eval "$(python gpu_check.py --export)".',
                "%s, against the RUNPATH of libtensorflow_framework.so.2" % os.path.join(os.path.dirname(wheel_.get("folder") or ""), "nvidia"))  # fmt: skip
    elif broken:
        finding("stops", "library-broken", "Found, but cannot be opened: %s." % broken[0]["name"], "Install the library that the message names.", broken[0]["error"])
    elif missing:
        finding("stops", "libraries-missing", "The loader cannot find: %s." % listed,
                "pip install 'tensorflow[and-cuda]==%s'%s. Another CUDA version does not stand in for these names." % (version, "" if numbers(version) >= (2, 14) else " exists from 2.14 on; for this version install CUDA %s and cuDNN %s by hand" % (cuda, cudnn)),
                missing[0]["error"])  # fmt: skip
    elif found:
        finding("fine", "libraries", "All %d CUDA libraries that it opens can be opened." % len(found), None, "dlopen, in a child process")
    dnn = next((each for each in found if "cudnn" in each["name"] and each["opened"] and each["version"]), None)
    if dnn:
        have, want = numbers(dnn["version"])[:2], numbers(cudnn)[:2]
        before = dnn["path"] and any(folder and dnn["path"].startswith(folder) for folder in environment_.get("LD_LIBRARY_PATH", "").split(":"))
        if have[:1] != want[:1] or have < want:
            finding("stops", "cudnn", "cuDNN %s is loaded; this TensorFlow is built with %s and takes the same major version, and no older minor one." % (dnn["version"], cudnn),
                    "%s." % ("Take its folder off LD_LIBRARY_PATH: that is searched before TensorFlow's own folders" if before else "Install cuDNN %s or newer of the same major version" % cudnn),
                    dnn["path"] or dnn["name"])  # fmt: skip
        else:
            finding("fine", "cudnn", "cuDNN %s fits (built with %s)." % (dnn["version"], cudnn), None, dnn["path"] or dnn["name"])


def _judge_kernels(facts, finding, build, gpus):
    """Whether the wheel has machine code for the GPU, or only PTX that the driver must compile, or neither.

    TensorFlow itself takes sm_89 as machine code and compute_90 as machine code and PTX.
    """
    has = build.get("cuda_compute_capabilities") or []
    parsed = [(each, re.match(r"(?:sm|compute)_(\d+)(\d)", each)) for each in has]
    machine = [tuple(map(int, match.groups())) for each, match in parsed if match]
    source = [tuple(map(int, match.groups())) for each, match in parsed if match and each.startswith("compute_")]
    for gpu in gpus:
        mine = numbers(gpu.get("capability"))[:2]
        if not mine or not machine:
            continue
        name = "%s (compute capability %s)" % (gpu.get("name"), gpu["capability"])
        if any(each[0] == mine[0] and each <= mine for each in machine):
            finding("fine", "kernels", "The wheel holds machine code for the %s." % name, None, "cuda_compute_capabilities: %s" % " ".join(has))
        elif source and mine >= min(source):
            finding("warns", "gpu-new", "The wheel holds no machine code for the %s: the driver must compile every kernel at its first use." % name,
                    "Let the first run take its time and keep what it compiled (CUDA_CACHE_MAXSIZE=4294967296)."
                    + (" For capability 12.0 users report CUDA_ERROR_INVALID_PTX instead: then take a build made for the card." if mine >= (12, 0) else ""),
                    "cuda_compute_capabilities: %s" % " ".join(has))  # fmt: skip
        else:
            finding("stops", "gpu-old", "The wheel holds no code that the %s can run." % name, "Use an older TensorFlow whose build information lists this card.", "cuda_compute_capabilities: %s" % " ".join(has))


def _judge_trial(trial_, finding, explained):
    """What TensorFlow itself did in the child: how far it came, and how it ended."""
    steps = trial_.get("steps") or []
    if not steps:
        if trial_.get("ended"):
            finding("stops", "child-died", "A Python child could not even start (%s)." % trial_["ended"], None, "child process")
        return
    last, errors = steps[-1]["step"], "\n".join(trial_.get("stderr") or [])
    doing = {"import": "importing TensorFlow", "list": "listing the GPUs", "listed": "preparing the GPU", "multiply": "the first multiplication on the GPU",
             "multiplied": "after the multiplication", "convolve": "the first convolution on the GPU (cuDNN)", "convolved": "after the convolution"}  # fmt: skip
    raised = next((step for step in steps if step["step"] == "raised"), None)
    fatal = next((line for line in (trial_.get("stderr") or []) if FATAL.match(line)), None)
    if "zlibwapi" in errors:
        finding("stops", "zlibwapi", "cuDNN cannot find zlibwapi.dll and ends the process.", "Put the 64-bit zlibwapi.dll into a folder on PATH, such as CUDA's bin folder, and start again.", "stderr of the child")
    if trial_.get("ended"):
        words = (trial_.get("stderr") or ["it said nothing"])[-1]
        if last == "import" and "Traceback" in errors:
            finding("stops", "import-failed", "TensorFlow cannot be imported.", "Read the last line of its traceback: it names the package or library.", words)
        else:
            finding("stops", "child-died", "TensorFlow's process %s during %s, with no Python exception." % (trial_["ended"], doing.get(last, last)),
                    "The cause is what is marked above; if nothing is, its last words are the lead. Then compare with the version table, and reinstall driver and CUDA packages together.", fatal or words)  # fmt: skip
    elif raised:
        finding("stops", "operation-failed", "A GPU is listed, but %s failed: %s." % (doing.get(steps[steps.index(raised) - 1]["step"], "using it"), raised["type"]),
                "The cause is what is marked above; if nothing is, its message is the lead.", " ".join(raised["text"].split())[:300])  # fmt: skip
    else:
        gpus = next((step["gpus"] for step in steps if step["step"] == "listed"), [])
        works = [step for step in steps if step["step"] in ("multiplied", "convolved") and step["right"] and "GPU" in step["device"]]
        if len(works) == 2:
            finding("fine", "works", "A multiplication and a convolution on %s gave the right results." % gpus[0], None, "TensorFlow in a child process")
        elif gpus:
            finding("stops", "wrong-result", "The GPU is listed, but its results are wrong or were computed on the CPU.", "Reinstall the driver; if it stays, suspect the card.", json.dumps(steps[-3:]))
        elif not explained:
            words = next((line for line in (trial_.get("stderr") or []) if re.search(r"cuInit|dlopen|Could not load", line)), "stderr of the child")
            finding("stops", "not-listed", "TensorFlow lists no GPU, and nothing above explains it.", "Read the child's messages (--json, facts, trial, stderr).", words)


def verdict(facts, findings):
    """{"usable": bool, "says": sentence}: usable only if a GPU did its work in the child."""
    usable = any(each["code"] == "works" for each in findings)
    stops = [each for each in findings if each["level"] == "stops"]
    if usable:
        return {"usable": True, "says": "TensorFlow uses the GPU."}
    first = stops[0]["says"] if stops else "No test on a GPU was made."
    return {"usable": False, "says": "TensorFlow does not use a GPU. First cause: " + first}


# ------------------------------------------------------------------------------------------------------------- reporting


def report(facts, findings):
    """The report as text."""
    where = facts.get("system") or {}
    name = "WSL2" if where.get("wsl") else where.get("system")
    lines = ["TensorFlow %s, Python %s, %s %s" % (version_of(facts) or "not found", where.get("python"), name, where.get("machine")), "", verdict(facts, findings)["says"], ""]
    marks = {"stops": " x ", "warns": " ! ", "fine": "ok "}
    for each in findings:
        lines.append("%s%s [%s]" % (marks[each["level"]], each["says"], each["code"]))
        if each["do"]:
            lines.append("      do:   " + each["do"])
        if each["source"]:
            lines.append("      from: " + str(each["source"]))
    return "\n".join(lines)


def export_line(wheel_facts):
    """The shell line that puts the CUDA libraries beside TensorFlow on LD_LIBRARY_PATH, before what is there already; "" if there are none."""
    beside = os.path.dirname(wheel_facts.get("folder") or "")
    folders = [os.path.join(beside, *folder.split("/")) for folder in wheel_facts.get("cuda folders", {}) if folder.endswith("/lib")]
    return "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" % shlex.quote(":".join(folders)) if folders else ""


def main():
    parser = argparse.ArgumentParser(description="Say why TensorFlow does or does not use the GPU.")
    parser.add_argument("--json", action="store_true", help="print facts, findings and verdict as JSON")
    parser.add_argument("--read", metavar="FILE", help="judge facts that --json saved instead of this machine")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long TensorFlow may take in its child (%(default)s)")
    parser.add_argument("--export", action="store_true", help="print the line that puts pip's CUDA libraries on LD_LIBRARY_PATH")
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
            print("Asking the driver, the libraries and TensorFlow; this takes some seconds, on a new GPU minutes.", file=sys.stderr)
        facts = gather(options.seconds)
    findings = judge(facts)
    decided = verdict(facts, findings)
    if options.json:
        print(json.dumps({"verdict": decided, "findings": findings, "facts": facts}, indent=1))
    else:
        print(report(facts, findings))
    return 0 if decided["usable"] else 1


if __name__ == "__main__":
    sys.exit(main())
