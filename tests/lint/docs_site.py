"""Refuses a tree from which docs/site/make.py cannot make the site of `./caftan docs` without a warning: links to what is
not there, docstrings that Doxygen does not understand. Skipped without Doxygen, which only `./caftan docs` installs.

usage: docs_site.py ROOT | --self-test
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree

SKIPPED = 77
MAKE = pathlib.Path(__file__).resolve().parents[2] / "docs/site/make.py"


def made_from(root, folder):
    """Returns (the folder of the site, what is wrong with it)."""
    out = pathlib.Path(folder) / "site"
    done = subprocess.run([sys.executable, "-B", MAKE, root, out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    errors = [line.removeprefix("site: ") for line in done.stdout.splitlines() if line.startswith("site: ")]
    return out, (errors or done.stdout.splitlines()) if done.returncode else []


def check(root):
    with tempfile.TemporaryDirectory() as folder:
        return made_from(root, folder)[1]


def check_content(root):
    """Refuses a site that lacks what GOOD has."""
    with tempfile.TemporaryDirectory() as folder:
        out, errors = made_from(root, folder)
        if errors:
            return errors
        text = {path.name: path.read_text().replace(' class="el"', "") for path in out.glob("*.html")}
        expected = (("index.html", 'A page "here"'), ("index.html", 'href="protocols_b.html"'),
                    ("protocols_b.html", 'href="index.html"'),
                    ("protocols_b.html", 'href="protocols_b.html#protocols_b__one--two-1"'),
                    ("a_8hpp.html", "offers: </p>"), ("a_8hpp.html", '<pre class="fragment">A a;'),
                    ("classcaftan_1_1A.html", '<dl class="section user"><dt>Errors (thrown)</dt>'),
                    ("classcaftan_1_1A.html", '<dt>Errors (thrown)</dt><dd>peer_down, or cancelled.'),
                    ("classcaftan_1_1A.html", 'href="protocols_b.html"'),
                    ("namespacecaftan_1_1a.html", "What a is for."))
        return [f"{name} lacks {piece}" for name, piece in expected if piece not in text.get(name, "")]


GOOD = {
    "CMakeLists.txt": "project(caftan VERSION 1.2.3 LANGUAGES CXX)\n",
    "docs/README.md": '# A\n\nA page "here", see [b](protocols/b.md) and [a](../libs/a/include/caftan/a.hpp).\n\n'
                      '![A line](images/a.svg)\n',
    "docs/images/a.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>\n',
    "docs/protocols/b.md": "# B\n\nAs `docs/README.md` says, [below](#one--two-1) and [c](../../c.py), `<T>` @ home.\n\n"
                           "## One & two\n\n```sh\n# no heading\n```\n\n## One & two\n",
    "libs/a/include/caftan/a.hpp": """/// What a.hpp offers:
///     A a;
/// and no more.
#pragma once
namespace caftan {
/// A class, see docs/protocols/b.md.
class A {
 public:
  /// Does it.
  /// @param x  how often
  /// Errors (thrown): timeout.
  void f(int x, int y);
  /// Does it again. Errors (thrown): peer_down, or
  /// cancelled.
  void g();
};
namespace detail {
/// @param nosuch  is not looked at
void f();
}  // namespace detail
}  // namespace caftan
namespace caftan::a {
/// A number.
inline constexpr int kOne = 1;
}  // namespace caftan::a
""",
    "libs/a/README.md": "# a\n\nWhat a is\nfor.\n\nMore.\n",
    "libs/a/include/caftan/internal/b.hpp": "/// @param nosuch  is not looked at\nvoid f();\n",
}
BAD = {
    "docs/README.md:3: warning: unable to resolve reference to 'protocols_b__three'":
        {"docs/README.md": "# A\n\nSee [b](protocols/b.md#three).\n"},
    "libs/a/include/caftan/a.hpp:10:": {"libs/a/include/caftan/a.hpp":
                                        GOOD["libs/a/include/caftan/a.hpp"].replace("@param x", "@param z")},
}

if __name__ == "__main__":
    if not shutil.which("doxygen"):
        print("skipped: no doxygen here (./caftan docs installs it)")
        sys.exit(SKIPPED)
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check_content, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1]).resolve()))
