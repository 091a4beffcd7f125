"""Checks the golden manifests against the schemas of Kubernetes, offline. Skips (77) without the package
kubernetes-validate of PyPI.

usage: kubernetes_schemas.py FOLDER
"""
import pathlib
import sys

try:
    import kubernetes_validate
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}; pip install kubernetes-validate")
    sys.exit(77)

KINDS = {"Secret", "ConfigMap", "Service", "Job"}


def main(folder):
    files = sorted(pathlib.Path(folder).glob("*.yaml"))
    failed = not files
    for file in files:
        documents = list(yaml.safe_load_all(file.read_text()))
        if {document["kind"] for document in documents} != KINDS:
            print(f"{file.name}: not one each of {', '.join(sorted(KINDS))}")
            failed = True
        for document in documents:
            try:
                kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
            except kubernetes_validate.ValidationError as error:
                print(f"{file.name}: {document['kind']}: {'.'.join(map(str, error.path))}: {error.message}")
                failed = True
    print(f"{len(files)} files")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
