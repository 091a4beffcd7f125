"""Makes the site of `./caftan docs`: pages and reference, opened as OUT/index.html without a server.

usage: make.py ROOT OUT

Ends with 1, and leaves OUT as it was, when Doxygen warns or a link leads nowhere; each fault is a line "site: FILE:LINE: ...".
"""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import pages

HERE = pathlib.Path(__file__).resolve().parent
AWESOME = pathlib.Path("/usr/share/doxygen-awesome-css")
STYLES = ("doxygen-awesome.css", "doxygen-awesome-sidebar-only.css")


def write_input(root, folder):
    """Writes Doxygen's input; returns {its file: (file of the tree, [number of the line there, for each line])}."""
    site, origins = pages.Site(root), {}

    def write(path, name, lines):
        lines = list(lines)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(line for _, line in lines) + "\n")
        origins[(folder / name).as_posix()] = (path.as_posix(), [number for number, _ in lines])

    # Those with links to others first: they give these their place in the side bar.
    for path in sorted(site.pages, key=lambda path: (path.as_posix() != "docs/README.md", path.name != "README.md", path)):
        write(path, f"{site.pages[path]}.md", site.page(path, (root / path).read_text()))
    for path, lines in pages.namespaces(root):
        write(path, f"namespaces/{path.parent.name}.dox", enumerate(lines, 1))
    for path, included in site.headers.items():
        write(path, included, site.header((root / path).read_text()))
    return origins


def run_doxygen(root, made, folder):
    """Runs Doxygen; its words go to this program's output. Returns what it warns of."""
    version = re.search(r"project\(caftan VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text()).group(1)
    styles = [str(AWESOME / name) for name in STYLES if (AWESOME / name).is_file()]
    warnings = made / "warnings.txt"
    settings = {"CAFTAN_VERSION": version, "CAFTAN_SITE": str(made), "CAFTAN_INPUT": str(folder),
                "CAFTAN_IMAGES": str(root / "docs/images"),
                "CAFTAN_WARNINGS": str(warnings),
                "CAFTAN_STYLE": " ".join(f'"{path}"' for path in (*styles, HERE / "caftan.css"))}
    text = (HERE.parent / "Doxyfile").read_text()
    # Later versions follow the colours of the system, which doxygen-awesome does by itself.
    numbers = subprocess.check_output(["doxygen", "--version"], text=True)
    if tuple(map(int, re.findall(r"\d+", numbers)[:3])) >= (1, 9, 5):
        text += "HTML_COLORSTYLE = LIGHT\n"
    done = subprocess.run(["doxygen", "-"], input=text, text=True, cwd=folder, env={**os.environ, **settings}, check=False)
    said = warnings.read_text().splitlines() if warnings.is_file() else []
    warnings.unlink(missing_ok=True)
    return said or ([f"doxygen ended with {done.returncode}"] if done.returncode else [])


def with_origin(warning, origins):
    """Returns a warning with the file and line of the tree."""
    match = re.match(r"(.+?):(\d+): (.*)", warning)
    if not match or match.group(1) not in origins:
        return warning
    path, numbers = origins[match.group(1)]
    return f"{path}:{numbers[min(int(match.group(2)), len(numbers)) - 1]}: {match.group(3)}"


class Links(html.parser.HTMLParser):
    """The links and the anchors of one file of the site."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        self.links |= {found[key] for key in ("href", "src") if found.get(key)}


def broken_links(made):
    """Yields each link of the site that leads nowhere."""
    files = {path.name: Links(path.read_text(errors="replace")) for path in sorted(made.glob("*.html"))}
    for name, found in files.items():
        for link in sorted(found.links):
            # Doxygen names the summary of nested classes also where all of them are private and it has none.
            if re.match(r"[a-z]+:", link) or link == "#nested-classes":
                continue
            file, _, anchor = urllib.parse.unquote(link).partition("#")
            file = file or name
            if not (made / file).exists() or anchor and file in files and anchor not in files[file].anchors:
                yield f"{name}: the link {link} leads nowhere"


def main(root, out):
    made, folder = out.with_name(out.name + ".new"), out.with_name(out.name + ".input")
    for path in (made, folder):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    origins = write_input(root, folder)
    faults = [with_origin(warning, origins) for warning in run_doxygen(root, made, folder)]
    faults += [] if faults else broken_links(made)
    for fault in faults:
        print(f"site: {fault}")
    shutil.rmtree(folder)
    if faults:
        shutil.rmtree(made)
        return 1
    shutil.rmtree(out, ignore_errors=True)
    made.rename(out)
    suffixes = [pathlib.Path(path).suffix for path in origins]
    print(f"site: {suffixes.count('.md')} pages, {suffixes.count('.hpp')} headers, no warning")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
