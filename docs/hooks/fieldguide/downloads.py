"""What the built site offers besides pages: the snippets, and the evidence as JSON."""

import io
import json
import re
import zipfile

from fieldguide import benchmarks


def of_snippets(folder):
    """[(path in the site, bytes)]: each snippet, and a zip of each that needs another one beside it."""
    files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.py"))}
    found = [(f"snippets/{name}", content) for name, content in files.items()]
    for name, content in files.items():
        needed = [other for other in files if re.search(rf"^(import|from) {other[:-3]}\b", content.decode(), re.M)]
        if needed:
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                for each in (name, *needed):
                    archive.writestr(zipfile.ZipInfo(each), files[each])  # without a date, so that equal files give equal archives
            found.append((f"snippets/{name[:-3]}.zip", packed.getvalue()))
    return found


def of_evidence(site, names):
    """[(path in the site, JSON text)]: this build's verification, those of all environments, and every measurement of the benchmarks `names`."""
    found = [("verification.json", site.own)]
    found += [(f"verification/{benchmarks.file_name(record['environment'])}.json", record) for record in site.records]
    found += [(measurement_path(record), record) for name in names for record in site.measurements(name)]
    return [(f"evidence/{path}", json.dumps(record, indent=1)) for path, record in found]


def measurement_path(record):
    """Where the raw record of a measurement lies below evidence/."""
    quick = "-quick" if record["quick"] else ""
    return f"measurements/{record['benchmark']}/{benchmarks.file_name(record['environment'])}{quick}.json"
