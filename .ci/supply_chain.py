"""What this project is made of: known vulnerabilities, licences, a bill of materials.

    python .ci/supply_chain.py audit TOOLS        exit code 1: found something; 2: nobody to ask
    python .ci/supply_chain.py sbom TOOLS FILE    CycloneDX 1.6, validated, of the runtime alone
    python .ci/supply_chain.py licences           of each package that the service needs
    python .ci/supply_chain.py pins               requirements.lock without sums, for constraints

TOOLS is the folder with pip-audit and cyclonedx-py, which have an environment of their own: an
auditor should not be among what it audits. Run with the Python whose packages are looked at.
"""
# ruff: noqa: T201, S603

import json
import subprocess
import sys
import tomllib
from collections.abc import Container, Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOUND, NOT_ASKED = 1, 2
# They ask nothing of who only uses the package; LGPL and MPL ask for what was changed in it.
LICENCES = (
    "MIT", "BSD", "APACHE", "PSF", "PYTHON SOFTWARE", "ISC", "MPL", "MOZILLA", "LGPL", "LESSER",
    "UNLICENSE", "ZLIB", "HPND", "CC0", "ZPL", "ZOPE",
)  # fmt: skip


def audit(tools: Path) -> int:
    """Both questions, whatever the first one's answer."""
    codes = _vulnerabilities(tools), _licences()
    return FOUND if FOUND in codes else max(codes)


def sbom(tools: Path, file: Path) -> int:
    """Of what runs in production, with exactly the versions of requirements.lock."""
    pins = {canonicalize_name(Requirement(line).name): line for line in _lock()}
    runtime = "\n".join(pins[name] for name in sorted(closure()) if name in pins)
    command = [tools / "cyclonedx-py", "requirements", "--pyproject", "pyproject.toml"]
    options = ["--spec-version", "1.6", "--output-format", "JSON", "--output-reproducible"]
    line = [*command, *options, "--validate", "--output-file", file, "-"]
    return subprocess.run(line, input=runtime.encode(), check=False).returncode


def _vulnerabilities(tools: Path) -> int:
    """pip-audit says "none known" also of packages of which it could learn nothing: count those."""
    command = [tools / "pip-audit", "--requirement", "requirements.lock"]
    options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except json.JSONDecodeError:
        print(f"no answer from the advisory service:\n{done.stderr[-500:]}", file=sys.stderr)
        return NOT_ASKED
    for package in packages:
        for found in package.get("vulns", ()):
            fixed = ", ".join(found["fix_versions"]) or "none yet"
            print(f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    skipped = [package["name"] for package in packages if "vulns" not in package]
    print(f"{len(packages) - len(skipped)} of {len(packages)} packages were audited")
    if skipped:
        print(f"not known to the advisory service: {', '.join(skipped[:5])} …", file=sys.stderr)
    found = any(package.get("vulns") for package in packages)
    return FOUND if found else NOT_ASKED if skipped else 0


def _licences() -> int:
    strange = [(name, text) for name, text in _declared(closure()) if not _is_allowed(text)]
    for name, text in strange:
        print(f"{name}: licence {text[:80]!r}: read it, then add it to LICENCES or leave it out")
    print(f"licences of {len(closure())} packages looked at, {len(strange)} to be read")
    return FOUND if strange else 0


def _is_allowed(text: str) -> bool:
    return any(known in text.upper() for known in LICENCES)


def _declared(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The expression, the classifiers, or the first line of what a package says of itself."""
    for name in sorted(names):
        about = metadata.metadata(name)
        classifiers = [c for c in about.get_all("Classifier", ()) if c.startswith("License ::")]
        free = (about["License"] or "").strip().partition("\n")[0]
        yield name, about["License-Expression"] or "; ".join(classifiers) or free


def closure(without: Container[str] = ()) -> set[str]:
    """What the dependencies of pyproject.toml bring along here, with the extras they ask for.

    `without` names dependencies that are left out, with what only they bring along.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    lines = map(Requirement, project["dependencies"])
    waiting = [line for line in lines if _applies(line) and line.name not in without]
    seen = set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for part in {(name, extra) for extra in ("", *requirement.extras)} - seen:
            seen.add(part)
            lines = map(Requirement, metadata.requires(name) or ())
            waiting += [line for line in lines if _applies(line, part[1])]
    return {name for name, _ in seen}


def _applies(requirement: Requirement, extra: str = "") -> bool:
    marker = requirement.marker
    if marker is None:
        return not extra
    return marker.evaluate({"extra": extra}) and (not extra or "extra" in str(marker))


def _lock() -> list[str]:
    """`name==version` of each package; the lines with sums are indented."""
    lines = Path("requirements.lock").read_text().splitlines()
    return [line.removesuffix(" \\") for line in lines if line and line[0] not in "#- "]


def licences() -> int:
    """A line for each package: name, version and licence, separated by tabs."""
    for name, text in _declared(closure()):
        print(name, metadata.version(name), text[:80], sep="\t")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "audit":
        sys.exit(audit(Path(sys.argv[2])))
    if sys.argv[1] == "licences":
        sys.exit(licences())
    if sys.argv[1] == "pins":
        sys.exit(print("\n".join(_lock())))
    sys.exit(sbom(Path(sys.argv[2]), Path(sys.argv[3])))
