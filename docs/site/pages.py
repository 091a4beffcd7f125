"""How the Markdown pages and public headers of the tree become Doxygen's input: `page` and `header` return the lines.

GitHub shows the same pages as they are, so links stay plain Markdown there: files with anchors in GitHub's way.
"""
import pathlib
import re

LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^()\s]+)\)")
IMAGE = re.compile(r"!\[([^\]\n]*)\]\([^()\s]*?([^/()\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")
# Doxygen has the other pages below the main page only if that one is called as the project.
TITLES = {"index": "Caftan", "readme": "In short"}
# Lines of a docstring that begin a section of their own.
SECTION = re.compile(r"(\s*/// )((?:Errors|Threads|Source|Precondition)(?: \([a-z]+\)| of [a-z]+)?): *(.*)")
# One that a re-wrap has left behind other text of its line.
BEHIND = re.compile(r"(\s*/// )(.*\S) (Errors(?: \([a-z]+\)| of [a-z]+)?: *.*)")


def paths(root):
    """Returns the pages of the site, below root."""
    found = [*sorted((root / "docs").rglob("*.md")), *(root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
    return [path.relative_to(root) for path in found if path.is_file()]


def identifier(path):
    """Returns what Doxygen calls a page: "protocols_rref" for docs/protocols/rref.md."""
    if path.as_posix() == "docs/README.md":
        return "index"
    return re.sub(r"\W+", "_", path.as_posix().removeprefix("docs/").removesuffix(".md")).lower()


def headings(text):
    """Yields (number of the line, level, title, anchor as GitHub makes it) of a page."""
    seen, fence = {}, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence = not fence
        match = None if fence else re.match(r"(#{1,6}) +(.*?)\s*#*$", line)
        if match:
            title = LINK.sub(r"\1", match.group(2))
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            yield number, len(match.group(1)), match.group(2), f"{slug}-{count}" if count else slug


def prose(text):
    """Yields (number, line) of a page: what stands in fences or between backticks is blank."""
    fence = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence = not fence
            continue
        if not fence and not line.startswith("    "):
            yield number, CODE.sub(lambda match: " " * len(match.group(0)), line)


def target(path, link):
    """Returns (file that a link on the page `path` means, anchor), or None for one that leads out of the tree."""
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    return pathlib.Path(normal((path.parent / name).as_posix())) if name else path, anchor


def normal(path):
    parts = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def headers(root):
    """Yields (path, how users include it) of each public header."""
    for folder in (*sorted((root / "libs").glob("*/include")), root / "actors/include"):
        for path in sorted(folder.rglob("*.hpp")):
            if "internal" not in path.parts:
                yield path.relative_to(root), path.relative_to(folder)


def namespaces(root):
    """Yields (page, lines of a docstring) of each namespace that public headers have: what its folder's README begins with."""
    text = "\n".join((root / path).read_text() for path, _ in headers(root))
    of_libraries = [path.relative_to(root) for path in sorted((root / "libs").glob("*/README.md"))]
    for readme in (pathlib.Path("docs/README.md"), *of_libraries, pathlib.Path("actors/README.md")):
        name = "caftan" if readme.parts[0] == "docs" else f"caftan::{readme.parent.name}"
        if not re.search(rf"^namespace {name}\b", text, re.M) or not (root / readme).is_file():
            continue
        about = "What programs name; what its inner namespaces hold is for code that goes deeper."
        if name != "caftan":
            about = (root / readme).read_text().split("\n\n")[1].strip()
        yield readme, ["/**", f" @namespace {name}", *about.splitlines(), "*/"]


class Site:
    def __init__(self, root):
        self.pages = {path: identifier(path) for path in paths(root)}
        self.headers = dict(headers(root))
        self.children = {"index"}  # pages that have their place in the tree of the side bar

    def link(self, path, text, link):
        """Returns a link as Doxygen has it; only the text where its target is not on the site."""
        found = target(path, link)
        if found is None:
            return f"[{text}]({link})"
        file, anchor = found
        if file.as_posix() + "/README.md" in {page.as_posix() for page in self.pages}:
            file = file / "README.md"
        if file in self.headers:
            return f"[{text}](@ref {self.headers[file].as_posix()})"
        page = self.pages.get(file)
        if page is None:
            return text
        if anchor:
            return f"[{text}](@ref {page}__{anchor})"
        is_above = path.name == "README.md" and (self.pages[path] == "index" or file.is_relative_to(path.parent))
        if is_above and page not in self.children:
            self.children.add(page)
            return f'@subpage {page} "{text.replace("`", "")}"'
        return f"[{text}](@ref {page})"

    def mention(self, text):
        """Makes links of the names of pages, as `docs/errors.md`."""
        def reference(match):
            page = self.pages.get(pathlib.Path(match.group(1)))
            return f'@ref {page} "{match.group(1)}"' if page else match.group(0)
        return re.sub(r"`?\b((?:docs/[\w/.-]+|CONTRIBUTING|CHANGELOG)\.md)`?", reference, text)

    def page(self, path, text):
        """Yields (number, line) of the page as Doxygen's input."""
        marks = {number: (level, title, anchor) for number, level, title, anchor in headings(text)}
        first, fence = True, False
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("```"):
                fence = not fence
            elif number in marks:
                level, title, anchor = marks[number]
                page = self.pages[path]
                name = f"{page}__{anchor}"
                if first and level == 1:
                    title, name = TITLES.get(page, title), "mainpage" if page == "index" else page
                line, first = f"{'#' * level} {title} {{#{name}}}", False
            elif not fence and not line.startswith("    "):
                line = LINK.sub(lambda match: self.link(path, match.group(1), match.group(2)), line)
                line = IMAGE.sub(r"![\1](\2)", line)  # Doxygen finds images by their names alone
                line = self.mention(line)
            yield number, line

    def header(self, text):
        """Yields (number, line) of a header as Doxygen's input: its first docstring is the file's."""
        if text.startswith("///"):
            yield 1, "/// @file"
        before = ""
        for number, line in enumerate(text.splitlines(), 1):
            doc = re.match(r"\s*///(?!<)", line)
            if doc:
                indent = line[:doc.end()]
                was_code, is_code = (one.startswith(indent + "    ") for one in (before, line))
                if before.startswith(indent) and was_code != is_code:
                    yield number, indent
                behind = None if is_code else BEHIND.match(line)
                if behind:
                    yield number, self.mention(behind.group(1) + behind.group(2))
                    line = behind.group(1) + behind.group(3)
                section = None if is_code else SECTION.match(line)
                if section:
                    yield number, f"{section.group(1)}@par {section.group(2)}"
                    line = section.group(1) + section.group(3)
                if not is_code:
                    line = self.mention(line)
            yield number, line
            before = line
