"""Refuses public names without a docstring: in the headers below */include/ (but internal/) each class, enum, concept,
alias, function, constant and public member function has `///` before it or `///<` behind it.

One docstring is enough for all declarations of a name in one scope. What needs none: data members and enumerators, whose
type and name say it or a `///<` does; constructors, destructors, operators and what is defaulted, deleted or overrides,
of which the class or its base speaks; what returns the member of its own name; `try_x`, which returns as a Result what
`x` throws; HOOKS; specializations; namespaces called `detail`.

usage: public_names.py ROOT | --self-test
"""
import pathlib
import re
import sys

import class_size
import tree

# Names that the standard library, Boost.Serialization or our own concepts prescribe.
HOOKS = {"serialize", "settings", "is_valid", "value_type", "result_type", "rebind", "construct", "min", "max", "lock", "unlock",
         "is_saving", "is_loading", "register_type", "get_helper", "reset_object_address", "delete_created_pointers",
         "get_library_version"}
ENDED = {"default", "delete"}


class Reader(class_size.Reader):
    """Reads which names of one header users see, and which of these have a docstring."""

    def __init__(self, text, name):
        super().__init__(text, name)
        lines = text.splitlines()
        self.below = {number + 1 for number, line in enumerate(lines, 1) if re.match(r"\s*///(?!<)", line)}
        self.behind = {number for number, line in enumerate(lines, 1) if "///<" in line}
        self.hidden, self.types, self.seen, self.documented = 0, set(), [], set()

    def note(self, names, path, first):
        """Notes a declaration of which the last token was read just now."""
        if self.hidden or len(path) != 1 or "<" in path[0] or any(part.endswith("detail") for part in names):
            return
        if path[0] in HOOKS:
            return
        last = self.tokens[self.at - 1][1]
        if first in self.below or not self.behind.isdisjoint(range(first, last + 1)):
            self.documented.add((names, path[0]))
        self.seen.append((names, path[0], first))

    def declaration(self, names, owner):
        begin, first = self.at, self.line()
        while self.token() == "template":
            self.at += 1
            self.angles()
            if self.token() == "requires":
                self.constraint()
        while self.token() == "[" and self.token(1) == "[":
            self.group()
        word = self.token()
        if word == "namespace" or word == "inline" and self.token(1) == "namespace":
            self.namespace(names)
        elif word == "enum":
            self.enumeration(names, first)
        elif word in class_size.CLASS_WORDS and self.is_body():
            self.class_body(names, owner, first)
        elif word in ("using", "concept"):
            self.at += 1
            path = self.path()
            is_name = self.token() in ("=", "[")
            self.until(";")
            if is_name:
                self.note(names, path, first)
        elif word in ("friend", "static_assert", "typedef"):
            while self.token() not in (";", "{"):
                self.at += 1
            self.group() if self.token() == "{" else None
        elif re.fullmatch(class_size.MACRO, word) and self.token(1) == "(":
            self.at += 1
            self.group()
        else:
            self.value_or_function(names, owner, begin, first)

    def enumeration(self, names, first):
        self.at += 1 + (self.token(1) in class_size.CLASS_WORDS)
        path = self.path()
        while self.token() not in ("{", ";"):
            self.at += 1
        is_body = self.token() == "{"
        head = self.at
        self.until(";")
        if is_body:
            end, self.at = self.at, head + 1
            self.note(names, path, first)
            self.at = end

    def class_body(self, names, owner, first):
        is_public = self.token() != "class"
        path = self.class_head()
        while self.token() not in ("{", ";", ""):
            self.angles() if self.token() == "<" else self.group() if self.token() == "(" else self.step()
        if self.token() == ";":
            return
        self.step()
        self.note(names, path, first)
        self.types.update(path)
        private = not is_public
        is_special = any("<" in part for part in path)
        self.hidden += is_special
        while self.token() and self.token() != "}":
            if self.token() in class_size.SPECIFIERS and self.token(1) == ":":
                private = self.token() != "public"
                self.at += 2
            elif self.token() == ";":
                self.step()
            else:
                self.hidden += private
                self.declaration((*names, *path), class_size.Class(""))
                self.hidden -= private
        self.hidden -= is_special
        self.until(";")

    def step(self):
        self.at += 1

    def value_or_function(self, names, owner, begin, first):
        path, before, is_static = (), "", False
        while self.token() and self.token() not in (";", "}", "=", "{"):
            token = self.token()
            is_static = is_static or token == "static"
            if re.fullmatch(class_size.MACRO, token) and self.token(1) == "(":
                self.step()
                self.group()
            elif token == "operator":
                path, before = (self.operator(),), "operator"
            elif token == "requires":
                self.constraint()
            elif re.match(r"[A-Za-z_~]", token) and token not in class_size.NO_FUNCTION:
                path, before = self.path(), "name"
            elif token == "<":
                self.angles()
            elif token == "(" and self.token(1) == "*":  # a pointer to a function
                path, before = (self.token(2),), ""
                self.group()
            elif token == "(" and before == "name":
                self.function(names, path, begin, first)
                return
            elif token == "(" and before == "operator":
                self.parameters(names, path, first)
                return
            else:
                self.group() if token in class_size.OPEN else self.step()
                before = ""
        self.until(";")
        if owner is None or is_static:
            self.note(names, path, first)

    def function(self, names, path, begin, first):
        if not self.parameters(names, path, first):
            self.until(";")
        said = [token for token, _ in self.tokens[begin:self.at]]
        ended = any(one == "=" and two in ENDED for one, two in zip(said, said[1:]))
        returns_member = said[-5:] == ["{", "return", f"{path[-1]}_", ";", "}"]
        if not (ended or returns_member or "override" in said or path[-1] in self.types or path[-1].startswith("~")):
            self.note(names, path, first)


def check(root):
    errors = []
    for path in tree.files(root, "libs", "actors"):
        name = path.relative_to(root).as_posix()
        if "/include/" not in name or "/internal/" in name:
            continue
        reader = Reader(path.read_text(), name)
        reader.scope((), None)
        if reader.token():
            errors.append(f"{name}:{reader.line()}: this script cannot read it: one more }} than {{")
        for names, said, line in reader.seen:
            if reader.documented.isdisjoint(((names, said), (names, said.removeprefix("try_")))):
                errors.append(f"{name}:{line}: {'::'.join((*names, said))} has no docstring (///)")
    return errors


HEADER = """/// A.
#pragma once
namespace a {
/// A class.
template <class T>
class A {
 public:
  A(int x) : x_{x} {}
  ~A();
  A(const A&) = delete;
  bool operator==(const A&) const = default;
  /// Returns x, doubled.
  int twice() const { return 2 * x(); }
  int x() const noexcept { return x_; }
  /// Errors (thrown): timeout.
  T load() { return try_load().value(); }
  Result<T> try_load();
  /// Of both.
  void set(int x);
  void set(double x) requires(sizeof(T) > 2);
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& x_;
  }

 protected:
  /// For heirs.
  virtual int next(int group) const = 0;

 private:
  struct Hidden {
    void f();
  };
  void hidden();
  int x_ = 0;
};
template <>
class A<int> {
 public:
  void of_a_specialization();
};
class Forward;
/// Overrides.
struct B : A<long> {
  int next(int group) const override;
  int member = 0;
  int (*pointer)(int) = nullptr;
};
namespace detail {
void inner();
}
using Id = int;           ///< an id
constexpr int kMost = 3;  ///< at most
/// Kinds.
enum class Kind {
  one,  ///< the first
  two,
};
template <class T>
T A<T>::load() {
  return {};
}
/// A concept.
template <class T>
concept C = requires(T t) { t.f(); };
friend bool operator<(const B& l, const B& r);
template <class F>
A(F) -> A<F>;
}  // namespace a
template <>
struct std::hash<a::B> {
  std::size_t operator()(a::B b) const noexcept { return 0; }
};
"""
PLACE = "libs/a/include/caftan/a/a.hpp"
GOOD = {PLACE: HEADER, "libs/a/include/caftan/a/internal/b.hpp": "void f();\n", "libs/a/src/c.hpp": "void f();\n"}


def header(old, new):
    """Returns the tree's change in which the good header has `new` instead of `old`."""
    assert old in HEADER, old
    return {PLACE: HEADER.replace(old, new, 1)}


BAD = {
    f"{PLACE}:4: a::A has no docstring": header("/// A class.\n", ""),
    "a::A::twice has no": header("  /// Returns x, doubled.\n", ""),
    "a::A::x has no": header("{ return x_; }", "{ return x_ + 1; }"),
    "a::A::load has no": header("  /// Errors (thrown): timeout.\n", ""),
    "a::A::set has no": header("  /// Of both.\n", ""),
    "a::A::hidden has no": header(" private:\n", " public:\n"),
    "a::B has no": header("/// Overrides.\n", ""),
    "a::B::next has no": header(" const override;", " const;"),
    "a::inner has no": header("namespace detail {\nvoid inner();\n}", "void inner();"),
    "a::Id has no": header("///< an id", "// an id"),
    "a::kMost has no": header("///< at most", ""),
    "a::Kind has no": header("/// Kinds.\n", ""),
    "a::C has no": header("/// A concept.\n", ""),
    "cannot read it": header("}  // namespace a\n", "}  }  // namespace a\n"),
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
