"""gpu_check.py: judged on simulated machines, collecting from faked sources, and run for real."""

import ast
import copy
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MACHINES = Path(__file__).parent / "gpu_machines"
CHECK = ROOT / "snippets" / "gpu_check.py"
GUIDE = ROOT / "docs" / "guide"
sys.path.insert(0, str(CHECK.parent))
import gpu_check  # noqa: E402

NO_GPU = json.loads((MACHINES / "no_gpu.json").read_text())
VERSIONS = json.loads((MACHINES / "versions.json").read_text())
LISTED = [{"step": "import"}, {"step": "list", "version": "2.21.0"}, {"step": "listed", "gpus": ["/physical_device:GPU:0"]}]
DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"
WORKED = LISTED + [
    {"step": "multiply"}, {"step": "multiplied", "device": DEVICE, "right": True},
    {"step": "convolve"}, {"step": "convolved", "device": DEVICE, "right": True}, {"step": "end"},
]  # fmt: skip


def opened(name, version=None, path=None):
    return {"name": name, "opened": True, "path": path or f"/home/me/venv/lib/python3.11/site-packages/nvidia/x/lib/{name}", "version": version, "error": None}


def machine(**changes):
    """The facts of a machine where all is well, with changes: a dotted name (`driver__tool__driver`) to a new value."""
    facts = copy.deepcopy(NO_GPU)
    facts["system"]["device files"] = ["/dev/nvidia0"]
    facts["driver"] = {
        "tool": {"path": "/usr/bin/nvidia-smi", "driver": "555.42.06", "cuda": "12.5", "gpus": [{"name": "NVIDIA L4", "capability": "8.9"}], "error": None},
        "kernel module": "555.42.06", "wsl library": False,
        "library": {"library": "libcuda.so.1", "opened": True, "init": 0, "cuda": "12.5", "devices": [{"name": "NVIDIA L4", "capability": "8.9"}], "management": True, "ended": None, "error": None},
    }  # fmt: skip
    facts["libraries"] = [opened(each["name"], "9.3.0" if "cudnn" in each["name"] else "12.5") for each in facts["libraries"]]
    facts["trial"] = {"ended": None, "steps": WORKED, "stderr": []}
    for name, value in changes.items():
        *path, last = name.split("__")
        place = facts
        for step in path:
            place = place[step]
        place[last.replace("_", " ") if last.replace("_", " ") in place else last] = value
    return facts


def missing(*names, error=True):
    return [dict(opened(each["name"]), opened=each["name"] not in names, error=f"{each['name']}: cannot open shared object file: No such file or directory" if error else None) for each in NO_GPU["libraries"]]


NO_DNN = {"step": "raised", "type": "InvalidArgumentError", "text": "No DNN in stream executor. [Op:Conv2D]"}
CONVOLUTION_FAILED = {"ended": None, "steps": WORKED[:6] + [NO_DNN, {"step": "end"}], "stderr": []}
NOTHING_LISTED = {"ended": None, "steps": [{"step": "import"}, {"step": "list", "version": "2.21.0"}, {"step": "listed", "gpus": []}, {"step": "end"}], "stderr": []}
EVERY_LIBRARY = [each["name"] for each in NO_GPU["libraries"]]
NO_DRIVER = {"library": "libcuda.so.1", "opened": False, "error": "libcuda.so.1: cannot open shared object file", "management": False, "ended": None}
CPU_BUILD = {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}

# name: (facts, code of the first finding that stops, words the report must hold)
SIMULATED = {
    "driver missing": (machine(driver__tool=None, driver__library=NO_DRIVER, trial=NOTHING_LISTED), "driver-missing", "525 or newer"),
    "driver missing in a container": (machine(system__container=True, driver__tool=None, driver__library=NO_DRIVER, trial=NOTHING_LISTED), "driver-missing", "--gpus all"),
    "driver too old": (machine(driver__tool__driver="470.82.01", driver__library__cuda="11.4", trial=NOTHING_LISTED), "driver-old", "CUDA 12.5 needs 525"),
    "driver too old, nvidia-smi absent": (machine(driver__tool=None, driver__kernel_module=None, driver__library__cuda="11.4", trial=NOTHING_LISTED), "driver-old", "for CUDA 11.4 is too old"),
    "driver of two versions": (machine(driver__tool__error="Failed to initialize NVML: Driver/library version mismatch", driver__library__init=803, trial=NOTHING_LISTED), "driver-mismatch", "Restart"),
    "driver's library ends its process": (machine(driver__library__ended="was ended by SIGSEGV", trial=NOTHING_LISTED), "driver-died", "SIGSEGV"),
    "no GPU in the machine": (machine(driver__library__init=100, driver__library__devices=[], trial=NOTHING_LISTED), "no-device", "cuInit returned 100"),
    "container without the device": (machine(system__device_files=[], driver__library__init=100, trial=NOTHING_LISTED), "no-device", "--gpus all"),
    "hidden by CUDA_VISIBLE_DEVICES": (machine(environment={"CUDA_VISIBLE_DEVICES": "-1"}, driver__library__init=100, trial=NOTHING_LISTED), "hidden", "hides every GPU"),
    "hidden by an empty CUDA_VISIBLE_DEVICES": (machine(environment={"CUDA_VISIBLE_DEVICES": ""}, driver__library__init=100, trial=NOTHING_LISTED), "hidden", "hides every GPU"),
    "hidden by the number of a card that is not there": (machine(environment={"CUDA_VISIBLE_DEVICES": "1"}, driver__library__init=100, driver__library__devices=[], trial=NOTHING_LISTED), "hidden", "hides every GPU"),
    "libnvidia-ml missing": (machine(driver__library__management=False, trial=NOTHING_LISTED), "management", "compute,utility"),
    "cuDNN older than built": (machine(libraries=missing()[:-1] + [opened("libcudnn.so.9", "9.1.0")], trial=CONVOLUTION_FAILED), "cudnn", "cuDNN 9.1.0 is loaded"),
    "older cuDNN first on LD_LIBRARY_PATH": (machine(environment={"LD_LIBRARY_PATH": "/opt/old:/x"}, libraries=missing()[:-1] + [opened("libcudnn.so.9", "9.1.0", "/opt/old/libcudnn.so.9")], trial=CONVOLUTION_FAILED), "cudnn", "off LD_LIBRARY_PATH"),
    "older cuDNN in pip's own folder": (machine(libraries=missing()[:-1] + [opened("libcudnn.so.9", "9.1.0", os.path.join(os.path.dirname(NO_GPU["wheel"]["folder"]), "nvidia/cudnn/lib/libcudnn.so.9"))], trial=CONVOLUTION_FAILED), "cudnn", "nvidia-cudnn-cu12==9.3.*"),
    "CUDA 11 beside a 12 wheel": (machine(packages={"tensorflow": "2.21.0", "nvidia-cudnn-cu11": "8.6.0.163"}, libraries=missing(*EVERY_LIBRARY), trial=NOTHING_LISTED), "libraries-missing", "is for CUDA 11"),
    "libraries missing": (machine(libraries=missing(*EVERY_LIBRARY), trial=NOTHING_LISTED), "libraries-missing", "tensorflow[and-cuda]==2.21.0"),
    "libraries off the loader path": (machine(wheel__cuda_folders={"nvidia/cusolver/lib": ["libcusolver.so.11"]}, libraries=missing("libcusolver.so.11"), trial=NOTHING_LISTED), "off-path", "--export"),
    "a library with a missing dependency": (machine(libraries=[dict(each, error="libnvJitLink.so.12: cannot open shared object file") for each in missing("libcusolver.so.11", error=False)], trial=NOTHING_LISTED), "library-broken", "libnvJitLink"),
    "Windows from 2.11 on": (machine(system__system="Windows", wheel__build=CPU_BUILD, trial=NOTHING_LISTED), "windows", "WSL2"),
    "a wheel for CPUs": (machine(packages={"tensorflow-cpu": "2.21.0"}, wheel__build=CPU_BUILD, trial=NOTHING_LISTED), "cpu-only", "tensorflow-cpu"),
    "WSL2 without libcuda": (machine(system__wsl=True, driver__tool=None, driver__library=NO_DRIVER, trial=NOTHING_LISTED), "wsl-driver", "wsl --update"),
    "WSL2 with libcuda off the loader path": (machine(system__wsl=True, driver__wsl_library=True, driver__library=NO_DRIVER, trial=NOTHING_LISTED), "wsl-path", "/usr/lib/wsl/lib"),
    "GPU newer than the wheel's kernels, and failing": (machine(driver__tool__gpus=[{"name": "NVIDIA GeForce RTX 5090", "capability": "12.0"}], trial={"ended": None, "steps": LISTED + [{"step": "multiply"}, {"step": "raised", "type": "InternalError", "text": "'cuLaunchKernel' failed with 'CUDA_ERROR_INVALID_HANDLE'"}, {"step": "end"}], "stderr": []}), "operation-failed", "CUDA_ERROR_INVALID_PTX"),
    "GPU older than the wheel's kernels": (machine(driver__tool__gpus=[{"name": "Quadro M2000", "capability": "5.2"}], trial={"ended": None, "steps": LISTED + [{"step": "multiply"}, {"step": "raised", "type": "InternalError", "text": "no kernel image"}, {"step": "end"}], "stderr": []}), "gpu-old", "no code that"),
    "a child that aborts": (machine(trial={"ended": "was ended by SIGABRT", "steps": LISTED + [{"step": "multiply"}], "stderr": ["F0000 00:00:1.2 3 cuda_context.cc:185] Check failed", "Fatal Python error: Aborted"]}), "child-died", "SIGABRT during the first multiplication"),
    "a child that dies in cuDNN": (machine(trial={"ended": "was ended by SIGSEGV", "steps": WORKED[:6], "stderr": []}), "child-died", "SIGSEGV during the first convolution"),
    "a child that never ends": (machine(trial={"ended": "did not end within 600 s", "steps": WORKED[:4], "stderr": []}), "child-died", "did not end within 600 s"),
    "zlibwapi.dll missing": (machine(trial={"ended": "exited with fail fast", "steps": WORKED[:6], "stderr": ["Could not locate zlibwapi.dll. Please make sure it is in your library path!"]}), "zlibwapi", "zlibwapi.dll"),
    "a TensorFlow that cannot be imported": (machine(trial={"ended": "exited with 1", "steps": [{"step": "import"}], "stderr": ["Traceback (most recent call last):", "ImportError: libstdc++.so.6: version `GLIBCXX_3.4.29' not found"]}), "import-failed", "GLIBCXX"),
    "results on the CPU": (machine(trial={"ended": None, "steps": [dict(each, device="/job:localhost/replica:0/task:0/device:CPU:0") if "device" in each else each for each in WORKED], "stderr": []}), "wrong-result", "computed on the CPU"),
    "no GPU listed, without a reason": (machine(trial=NOTHING_LISTED), "not-listed", "lists no GPU"),
    "no TensorFlow": (machine(wheel={"found": False}, packages={}, trial=None), "tensorflow-missing", "no TensorFlow"),
    "a file named tensorflow.py": (machine(wheel={"found": True, "folder": "/home/me", "origin": "/home/me/tensorflow.py", "build": None, "looks in": [], "cuda folders": {}}), "tensorflow-shadowed", "Rename"),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_machine_is_judged(name):
    facts, code, words = SIMULATED[name]
    findings = gpu_check.judge(json.loads(json.dumps(facts)))  # facts survive being saved
    stops = [each["code"] for each in findings if each["level"] == "stops"]
    assert stops and stops[0] == code
    assert not gpu_check.verdict(findings)["usable"]
    assert words in gpu_check.report(facts, findings)
    assert all(each["source"] for each in findings), "each finding names its source"


def test_machine_where_all_is_well():
    findings = gpu_check.judge(machine())
    assert {each["level"] for each in findings} == {"fine"}
    assert [each["code"] for each in findings] == ["wheel", "driver", "libraries", "cudnn-fits", "kernels", "works"]
    assert gpu_check.verdict(findings) == {"usable": True, "says": "TensorFlow uses the GPU."}


def test_a_gpu_that_worked_is_usable_whatever_else_was_found():
    facts = machine(libraries=missing(*EVERY_LIBRARY))
    findings = gpu_check.judge(facts)
    assert gpu_check.verdict(findings)["usable"] and not [each for each in findings if each["level"] == "stops"]


def test_two_packages_in_one_folder_are_named():
    assert "two-packages" in [each["code"] for each in gpu_check.judge(machine(packages={"tensorflow": "2.21.0", "tensorflow-cpu": "2.21.0"}))]


def test_a_source_that_fails_stops_no_other():
    facts = machine(failed={"driver": "PermissionError: no"}, driver=None, trial=NOTHING_LISTED)
    codes = [each["code"] for each in gpu_check.judge(facts)]
    assert "not-read" in codes and "driver-missing" not in codes and "libraries" in codes
    assert gpu_check.judge({"failed": {}})[0]["code"] == "tensorflow-missing"


@pytest.mark.parametrize("code, has, says", [
    ("8.9", ["sm_60", "compute_90"], "gpu-old"), ("9.0", ["sm_80", "compute_90"], "kernels"), ("8.6", ["sm_75", "compute_80"], "kernels"),
    ("9.0", ["sm_75", "compute_80"], "gpu-new"), ("12.0", ["sm_89", "compute_90"], "gpu-new"), ("5.2", ["sm_60", "compute_90"], "gpu-old"),
])  # fmt: skip
def test_kernels_are_judged_as_tensorflow_judges_them(code, has, says):
    facts = machine(driver__tool__gpus=[{"name": "a GPU", "capability": code}])
    facts["wheel"]["build"]["cuda_compute_capabilities"] = has
    assert says in [each["code"] for each in gpu_check.judge(facts)]


def test_exit_codes_in_words(monkeypatch):
    assert gpu_check.how_it_ended(0) is None and gpu_check.how_it_ended(3) == "exited with 3"
    assert "0xC0000409" in gpu_check.how_it_ended(3221226505)  # as Python on Windows gives it
    monkeypatch.setattr(os, "name", "nt")
    assert "0xC0000409" in gpu_check.how_it_ended(-1073740791) and "0xC0000005" in gpu_check.how_it_ended(-1073741819)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_signals_in_words():
    assert gpu_check.how_it_ended(-6) == "was ended by SIGABRT"


# ------------------------------------------------------------------------------------------------------------- collecting


@pytest.mark.parametrize("text, cuda", [
    ("import collections\nbuild_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('is_cuda_build', True)])\n", "12.5.1"),
    ("build_info = {'cuda_version': '64_101', 'cudnn_version': '64_7', 'is_cuda_build': True}\n", "64_101"),
    ("is_cuda_build = True\ncuda_version_number = '10.1'\ncudnn_version_number = '7'\n", "10.1"),
])  # fmt: skip
def test_build_information_of_all_ages(tmp_path, text, cuda):
    (tmp_path / "build_info.py").write_text(text)
    found = gpu_check.read_build_info(tmp_path / "build_info.py")
    assert found["cuda_version"] == cuda and found["is_cuda_build"] is True


def test_what_wheels_were_built_for():
    assert gpu_check.built_for({"cuda_version": "12.5.1", "cudnn_version": "9"}, "2.21.0") == ("12.5", "9.3")
    assert gpu_check.built_for({"cuda_version": "64_112", "cudnn_version": "64_8"}, "2.10.1") == ("11.2", "8.1")
    assert gpu_check.built_for({"cuda_version": "64_101", "cudnn_version": "64_7"}, "2.3.0") == ("10.1", "7.6")
    assert gpu_check.built_for({}, "2.0.4") == ("10.0", "7.4")
    assert gpu_check.files_wanted({"cuda_version": "64_101", "cudnn_version": "64_7"}, "2.3.0", windows=True)[0] == "cudart64_101.dll"
    assert gpu_check.files_wanted({"cuda_version": "11.2", "cudnn_version": "8"}, "2.6.5")[-1] == "libcudnn.so.8"


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_nvidia_smi_is_asked(tmp_path, monkeypatch):
    script(tmp_path / "nvidia-smi", """case "$1" in
      --query-gpu=name,compute_cap) echo 'NVIDIA L4, 8.9'; echo 'NVIDIA A100-SXM4-80GB, 8.0';;
      *) echo '| NVIDIA-SMI 555.42.06    Driver Version: 555.42.06    CUDA Version: 12.5     |';;
    esac""")  # fmt: skip
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    tool = gpu_check.driver()["tool"]
    assert (tool["driver"], tool["cuda"], tool["error"]) == ("555.42.06", "12.5", None)
    assert [gpu["capability"] for gpu in tool["gpus"]] == ["8.9", "8.0"]


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_an_old_or_failing_nvidia_smi(tmp_path, monkeypatch):
    script(tmp_path / "nvidia-smi", """case "$1" in
      --query-gpu=name,compute_cap) echo 'Field "compute_cap" is not a valid field to query.'; exit 2;;
      --query-gpu=name) echo 'GeForce GTX 1080';;
      *) echo 'Driver Version: 450.80.02  CUDA Version: 11.0';;
    esac""")  # fmt: skip
    assert gpu_check.ask_tool(str(tmp_path / "nvidia-smi"))["gpus"] == [{"name": "GeForce GTX 1080", "capability": None}]
    script(tmp_path / "nvidia-smi", "exec sleep 30")
    assert gpu_check.ask_tool(str(tmp_path / "nvidia-smi"), seconds=1)["error"] == "nvidia-smi did not answer within 1 s"
    script(tmp_path / "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")
    assert "version mismatch" in gpu_check.ask_tool(str(tmp_path / "nvidia-smi"))["error"]


def fake_site(folder, tensorflow, build="{'is_cuda_build': False, 'is_rocm_build': False}"):
    """A site-packages with a TensorFlow that does what the program text `tensorflow` says."""
    (folder / "tensorflow" / "python" / "platform").mkdir(parents=True)
    (folder / "tensorflow" / "__init__.py").write_text(tensorflow)
    (folder / "tensorflow" / "python" / "platform" / "build_info.py").write_text(f"build_info = {build}\n")
    return folder


def run_check(*arguments, site=None, seconds=60, **environment):
    """Runs gpu_check.py as a reader does. Returns (exit code, the JSON)."""
    variables = {**os.environ, **environment, **({"PYTHONPATH": str(site)} if site else {})}
    run = subprocess.run([sys.executable, CHECK, "--json", "--seconds", str(seconds), *arguments], capture_output=True, text=True, env=variables)
    return run.returncode, json.loads(run.stdout)


WORKING = """
__version__ = "2.21.0"
class Result:
    device = "/job:localhost/replica:0/task:0/device:GPU:0"
    def __init__(self, value): self.value = value
    def __getitem__(self, index): return self.value
class config:
    class PhysicalDevice: name = "/physical_device:GPU:0"
    list_physical_devices = staticmethod(lambda kind: [config.PhysicalDevice()])
class test: is_built_with_cuda = staticmethod(lambda: True)
class linalg: matmul = staticmethod(lambda a, b: Result(64.0))
class nn: conv2d = staticmethod(lambda *a: Result(27.0))
ones = lambda shape: None
import contextlib
device = lambda name: contextlib.nullcontext()
"""


@pytest.mark.parametrize("program, code, words", [
    (WORKING, 0, "gave the right results"),
    (WORKING.replace("Result(27.0)", "os.abort()").replace("import contextlib", "import contextlib, os"), 1, "SIGABRT during the first convolution"),
    ("import os; os.abort()", 1, "SIGABRT during the import of TensorFlow"),
    ("import ctypes; ctypes.string_at(0)", 1, "SIGSEGV during the import of TensorFlow"),
    ("import os; os._exit(3)", 1, "exited with 3 during the import"),
    ("import time; time.sleep(60)", 1, "did not end within 2 s"),
    ("raise ImportError('libstdc++.so.6 is too old')", 1, "libstdc++.so.6 is too old"),
    (WORKING.replace("Result(64.0)", "1 / 0"), 1, "ZeroDivisionError"),
])  # fmt: skip
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_children_that_work_and_that_die(tmp_path, program, code, words):
    exit_code, result = run_check(site=fake_site(tmp_path, program), seconds=2)
    assert exit_code == code and result["verdict"]["usable"] == (code == 0)
    assert words in json.dumps(result["findings"])


@pytest.mark.skipif(platform.system() != "Linux", reason="the loader's search path")
def test_where_a_library_is_taken_from(tmp_path, monkeypatch):
    site = fake_site(tmp_path / "site", "", "{'is_cuda_build': True, 'cuda_version': '12.5.1', 'cudnn_version': '9'}")
    for folder in ("cudnn", "cusolver"):
        (site / "nvidia" / folder / "lib").mkdir(parents=True)
    (site / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9").touch()
    (site / "nvidia" / "cusolver" / "lib" / "libcusolver.so.11").touch()
    (site / "tensorflow" / "libtensorflow_framework.so.2").write_bytes(b"\0$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../nvidia/cudnn/lib:$ORIGIN/../tensorrt\0")
    monkeypatch.syspath_prepend(str(site))
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    found = gpu_check.wheel()
    assert found["looks in"] == ["nvidia/cudnn/lib"] and found["cuda folders"]["nvidia/cusolver/lib"] == ["libcusolver.so.11"]
    assert gpu_check.where_it_is("libcudnn.so.9", found) == str(site / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9")
    assert gpu_check.where_it_is("libcusolver.so.11", found) == "libcusolver.so.11"
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "libcudnn.so.9").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "first"))
    assert gpu_check.where_it_is("libcudnn.so.9", found) == str(tmp_path / "first" / "libcudnn.so.9")
    assert gpu_check.export_line(found) == f"export LD_LIBRARY_PATH={site}/nvidia/cudnn/lib:{site}/nvidia/cusolver/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"


def test_saved_facts_are_judged_elsewhere(tmp_path):
    exit_code, result = run_check("--read", str(MACHINES / "no_gpu.json"))
    assert exit_code == 1 and "driver-missing" in [each["code"] for each in result["findings"]]
    (tmp_path / "well.json").write_text(json.dumps({"facts": machine()}))
    assert run_check("--read", str(tmp_path / "well.json"))[0] == 0
    (tmp_path / "other.json").write_text('{"schema": "something else"}')
    refused = subprocess.run([sys.executable, CHECK, "--read", str(tmp_path / "other.json")], capture_output=True, text=True)
    assert refused.returncode == 1 and "schema version 1" in refused.stderr and "Traceback" not in refused.stderr


def test_it_needs_nothing_but_python():
    source = CHECK.read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)


# ---------------------------------------------------------------------------------------------------------- run for real


def test_this_machine():
    exit_code, result = run_check(seconds=300)
    assert exit_code == (0 if result["verdict"]["usable"] else 1)
    assert result["facts"]["failed"] == {}
    if not result["verdict"]["usable"]:
        assert [each for each in result["findings"] if each["level"] == "stops"]


BUILD = importlib.metadata.version("tensorflow").split(".")[:2] if importlib.util.find_spec("tensorflow") else None
LIBRARIES = "libcuda.so.1 libnvidia-ml.so.1 libcudart.so.12 libcublas.so.12 libcublasLt.so.12 libcufft.so.11 libcusolver.so.11 libcusparse.so.12 libcudnn.so.9".split()
needs_standin = pytest.mark.skipif(
    not shutil.which("cc") or platform.system() != "Linux" or platform.machine() != "x86_64" or BUILD != ["2", "21"], reason="needs a C compiler, Linux on x86-64 and TensorFlow 2.21"
)


@pytest.fixture(scope="module")
def standin(tmp_path_factory):
    """A folder with the stand-in driver, and one with the stand-in CUDA libraries too."""
    every, driver = tmp_path_factory.mktemp("standin"), tmp_path_factory.mktemp("driver")
    for name in LIBRARIES:
        subprocess.run(["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", "-o", every / name, MACHINES / "standin.c"], check=True)
    for name in LIBRARIES[:2]:
        shutil.copy(every / name, driver / name)
    return {"every": str(every), "driver": str(driver)}


def codes(result, level="stops"):
    return [each["code"] for each in result["findings"] if each["level"] == level]


def shown(result):
    """What TensorFlow printed on stderr, and the texts of exceptions, without times and process numbers."""
    trial = result["facts"]["trial"]
    return "\n".join(trial["stderr"] + [step.get("text", "") for step in trial["steps"]])


def page(name):
    return (GUIDE / f"{name}.md").read_text()


@needs_standin
def test_driver_without_libraries(standin):
    exit_code, result = run_check(LD_LIBRARY_PATH=standin["driver"])
    assert exit_code == 1 and codes(result) == ["libraries-missing"]
    for quoted in ("Could not load dynamic library 'libcudnn.so.9'", "Could not find cuda drivers on your machine, GPU will not be used.", "Cannot dlopen some GPU libraries."):
        assert quoted in shown(result) and quoted in page("gpu-not-found") + page("cuda-libraries")


@needs_standin
def test_older_cudnn(standin):
    exit_code, result = run_check(LD_LIBRARY_PATH=standin["every"], STANDIN_CUDNN="90100")
    assert exit_code == 1 and codes(result) == ["cudnn", "operation-failed"]
    for quoted in ("Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.", "No DNN in stream executor."):
        assert quoted in shown(result) and quoted in page("gpu-and-versions")


@needs_standin
def test_driver_that_fails_in_mid_work_ends_the_process(standin):
    exit_code, result = run_check(LD_LIBRARY_PATH=standin["every"], STANDIN_BREAK="30")
    assert exit_code == 1 and codes(result) == ["child-died"]
    assert "was ended by SIGABRT" in json.dumps(result["findings"])
    quoted = 'Check failed: cuda::ToStatus(cuCtxSetCurrent(context_), "Failed setting context") is OK'
    assert quoted in shown(result) and quoted in page("silent-exit")


@needs_standin
def test_tensorflow_2_21_does_not_look_where_pip_puts_cusolver(standin, tmp_path):
    real = Path(importlib.util.find_spec("tensorflow").origin).parent
    shutil.copytree(real, tmp_path / "tensorflow", copy_function=os.symlink, ignore=shutil.ignore_patterns("include"))
    for name, folder in zip(LIBRARIES[2:], ("cuda_runtime", "cublas", "cublas", "cufft", "cusolver", "cusparse", "cudnn")):
        (tmp_path / "nvidia" / folder / "lib").mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(standin["every"]) / name, tmp_path / "nvidia" / folder / "lib")
    exit_code, result = run_check(site=tmp_path, LD_LIBRARY_PATH=standin["driver"])
    assert exit_code == 1 and codes(result) == ["off-path"]
    assert "loader looks: libcusolver.so.11." in json.dumps(result["findings"])
    assert "Could not load dynamic library 'libcusolver.so.11'" in shown(result) and result["facts"]["trial"]["steps"][2]["gpus"] == []


# -------------------------------------------------------------------------------------------------------------- the pages


def test_every_finding_has_its_place_in_the_guide():
    anchors = set(re.findall(r"\{ #([\w-]+) \}", page("gpu-not-found") + page("cuda-libraries") + page("silent-exit") + page("gpu-and-versions")))
    for code, (_, do) in gpu_check.WORDS.items():
        assert not do or code in anchors, f"no heading with {{ #{code} }}"


def test_the_report_on_the_page_is_the_real_one():
    found = re.search(r"```text \{title=\"gpu_check.py, a machine[^\n]*\n(.*?)\n```", page("gpu-and-versions"), re.DOTALL)
    facts = SIMULATED["older cuDNN first on LD_LIBRARY_PATH"][0]
    assert found and found[1] == gpu_check.report(facts, gpu_check.judge(facts))


def rows(name, heading):
    """The rows of the first table under a heading of a page: lists of cells without Markdown marks."""
    text = page(name).split(heading, 1)[1]
    lines = re.search(r"(?:^ *\|.*\n)+", text, re.M)[0].splitlines()[2:]
    return [[cell.strip().strip("`*") for cell in re.sub(r"\[\^\w+\]", "", line).strip("| ").split("|")] for line in lines]


def test_the_version_table_is_its_data():
    table = rows("version-table", "{ #table }")
    assert len(table) == len(VERSIONS["versions"]) == 22
    for cells, row in zip(table, VERSIONS["versions"]):
        documented, wheel = row["documented"], row["wheel"]
        said = f"{wheel['cuda']} / {wheel['cudnn']} ({wheel['version']})" if wheel else "–"
        cuda = documented["cuda"]
        driver = VERSIONS["driver"].get(cuda) or VERSIONS["driver"][cuda.split(".")[0]]
        assert cells == [row["tensorflow"], documented["python"], cuda, documented["cudnn"], said, driver]


def test_the_other_tables_are_their_data():
    for cells, row in zip(rows("version-table", "{ #compiler }"), VERSIONS["versions"]):
        assert cells == [row["tensorflow"], row["documented"]["compiler"], row["documented"]["bazel"]]
    with_extra = [row for row in VERSIONS["versions"] if row["and_cuda"]]
    table = rows("version-table", "{ #and-cuda }")
    assert len(table) == len(with_extra)
    for cells, row in zip(table, with_extra):
        assert cells == [row["metadata"]["version"], row["and_cuda"]["cuda"], row["and_cuda"]["cudnn"]]


def test_the_programs_own_table_is_the_same():
    assert gpu_check.TESTED_WITH == {row["tensorflow"]: (row["documented"]["cuda"], row["documented"]["cudnn"]) for row in VERSIONS["versions"]}
    for cuda, driver in VERSIONS["driver"].items():
        assert gpu_check.OLDEST_DRIVER[cuda][0] == driver
    build = gpu_check.wheel().get("build") or {}
    if build.get("is_cuda_build"):
        version = ".".join(BUILD)
        assert (build["cuda_version"], build["cudnn_version"]) in [(row["wheel"]["cuda"], row["wheel"]["cudnn"]) for row in VERSIONS["versions"] if row["tensorflow"] == version]
