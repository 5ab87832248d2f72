"""Other interpreters to verify the pages under: one line each in pyproject.toml, [tool.fieldguide.environments].

    "tf2.15" = { python = "3.11", packages = ["tensorflow==2.15.1"] }
"""

import shutil
import subprocess
import tomllib
from pathlib import Path

from fieldguide.records import RecordError


def settings(root):
    """The table of environments: name -> {"python", "packages", "pages" (optional: the only pages it verifies)}."""
    with open(Path(root) / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["tool"]["fieldguide"]["environments"]


def interpreter(root, name):
    """The Python of environment `name`; makes its folder .envs/NAME when it is missing or its line changed."""
    table = settings(root)
    if name not in table:
        raise RecordError(f"no environment {name!r} in pyproject.toml; there are: {', '.join(table)}")
    wanted, folder = table[name], Path(root) / ".envs" / name
    stamp = folder / "packages.txt"
    python = folder / "bin" / "python"
    text = "\n".join([wanted["python"], *wanted["packages"]])
    if not (stamp.exists() and stamp.read_text() == text):
        base = shutil.which(f"python{wanted['python']}")
        if not base:
            raise RecordError(f"environment {name} needs python{wanted['python']} on the PATH")
        print(f"making the environment {name} in {folder} (a minute or two)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            subprocess.run([base, "-m", "venv", folder], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted["packages"]], check=True)
        except subprocess.CalledProcessError as error:
            raise RecordError(f"cannot make the environment {name}: `{' '.join(map(str, error.cmd))}` failed, see above") from None
        stamp.write_text(text)
    return python
