"""Refuses classes and functions of libs, actors and apps that are too large, and classes that are spread over source files;
in tests, functions that are too large and classes that are spread.

A class's lines are those of its body and of the member functions that stand outside of it, over all files; its members are
the non-static data members; its source files are those with its body or one of its members. A class inside another counts
by itself, and with its lines to the other where it stands in that one's body. Functions are counted with their heads.

usage: class_size.py ROOT [--worst] | --self-test
"""
import dataclasses
import pathlib
import re
import sys

import tree

CLASS_LINES, MEMBERS, FUNCTION_LINES = 500, 20, 60
RULES = ("lines", "members", "files", "function")
# The rules that count in tests: a model of a protocol is as large as the protocol.
TEST_RULES = ("files", "function")
# What breaks a rule on purpose: {class, or function and its file: {rule: reason}}. For data members the reason is an ADR.
EXEMPT = {
    "caftan::WorkerOptions": {"members": "docs/adr/0028-tls-between-hosts-by-default.md"},
    "caftan::transport::UcxLibrary": {"members": "docs/adr/0032-ucx-beside-a-socket.md"},
    "caftan::autograd::model::World": {"files": "the model of a protocol: each file has what one of its parts does"},
    "caftan::rpc::model::World": {"files": "the model of a protocol: each file has what one of its parts does"},
}

TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\f\v]+|\\\n|//(?:\\\n|[^\n])*|/\*.*?\*/)
      |(?P<line>\n)
      |(?P<raw>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
      |(?P<text>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
      |(?P<number>\.?\d(?:[eEpP][+-]|'[0-9a-zA-Z]|[\w.])*)
      |(?P<word>[A-Za-z_]\w*)
      |(?P<mark2>::|->\*?|<=>|<=|>=|==|!=|&&|\|\||<<|\.\.\.|.)""", re.S | re.X)
CLASS_WORDS = ("class", "struct", "union")
MACRO = r"[A-Z][A-Z0-9]*_[A-Z0-9_]+"
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, (")", "]", "}")
SPECIFIERS = {"public", "protected", "private"}
# A parenthesis after one of these is no parameter list.
NO_FUNCTION = {"alignas", "decltype", "noexcept", "explicit", "requires", "__attribute__", "static_assert", "sizeof"}
NOT_STORED = {"using", "typedef", "friend", "static", "static_assert", "enum", "template", "extern", "concept"}


@dataclasses.dataclass
class Class:
    name: str  # with namespaces
    file: str = ""  # where the body is
    line: int = 0
    lines: int = 0
    members: list = dataclasses.field(default_factory=list)
    sources: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Function:
    name: str
    file: str
    line: int
    lines: int
    scope: tuple  # of namespaces and classes around it
    path: tuple  # its own name, in parts


def tokens(text):
    """Returns [(token, line)] without comments and lines of the preprocessor; of #if the first branch. Strings are '""'."""
    found, line, dead, at_start = [], 1, [], True
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        position = match.end()
        token = match.group(0)
        if match.group("line"):
            at_start = True
        elif token == "#" and at_start:
            end = re.compile(r"(?:\\\n|/\*.*?\*/|[^\n])*", re.S).match(text, position).end()
            word = re.match(r"\s*(\w*)", text[position:end]).group(1)
            if word in ("if", "ifdef", "ifndef"):
                dead.append(False)
            elif word in ("else", "elif") and dead:
                dead[-1] = True
            elif word == "endif" and dead:
                dead.pop()
            token, position = text[match.start():end], end
        elif not match.group("skip"):
            at_start = False
            if not any(dead):
                found.append(('""' if match.group("raw") or match.group("text") else token, line))
        line += token.count("\n")
    return found


class Reader:
    """Reads the declarations of one file."""

    def __init__(self, text, name):
        self.tokens, self.name, self.at = tokens(text), name, 0
        self.classes, self.functions, self.values = [], [], []

    def token(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at][0] if at < len(self.tokens) else ""

    def line(self):
        return self.tokens[min(self.at, len(self.tokens) - 1)][1]

    def group(self):
        """Steps over what a bracket at the current place opens."""
        depth = 0
        while self.token():
            depth += self.token() in OPEN
            depth -= self.token() in CLOSE
            self.at += 1
            if depth == 0:
                return

    def angles(self):
        """Steps over the template list that a '<' at the current place opens."""
        depth = 0
        while self.token():
            if self.token() in OPEN:
                self.group()
                continue
            depth += self.token() == "<"
            depth -= self.token() == ">"
            self.at += 1
            if depth == 0:
                return

    def path(self):
        """Steps over a name with its scopes and template arguments; returns its parts."""
        parts = []
        if self.token() == "::":
            self.at += 1
        while re.match(r"[A-Za-z_~]", self.token()):
            if self.token() == "operator":
                return (*parts, self.operator())
            part = self.token()
            self.at += 1
            if part == "~":
                part += self.token()
                self.at += 1
            if self.token() == "<":
                begin = self.at
                self.angles()
                part += "".join(token for token, _ in self.tokens[begin:self.at])
            parts.append(part)
            if self.token() == "::" and self.token(1) == "template":
                self.at += 1
            if self.token() != "::":
                break
            self.at += 1
        return tuple(parts)

    def operator(self):
        """Steps over `operator` and its sign or type, up to the parameters."""
        begin = self.at
        self.at += 1
        if self.token() == "(":
            self.at += 2
        while self.token() not in ("(", ")", ";", "...", ""):
            self.at += 1
        return "".join(token for token, _ in self.tokens[begin:self.at])

    def constraint(self):
        """Steps over a requires clause."""
        self.at += 1
        while True:
            while self.token() == "!":
                self.at += 1
            if self.token() == "requires":
                self.at += 1
                if self.token() == "(":
                    self.group()
                self.group()
            elif self.token() == "(":
                self.group()
            else:
                self.path()
            if self.token() not in ("&&", "||"):
                return
            self.at += 1

    def scope(self, names, owner):
        """Reads declarations up to the end of a scope. owner: the Class that it is the body of, or None."""
        while self.token() and self.token() != "}":
            if self.token() in SPECIFIERS and self.token(1) == ":":
                self.at += 2
            elif self.token() == ";":
                self.at += 1
            else:
                self.declaration(names, owner)

    def declaration(self, names, owner):
        begin, first = self.at, self.line()
        while self.token() == "template" and self.token(1) == "<":
            self.at += 1
            self.angles()
            if self.token() == "requires":
                self.constraint()
        while self.token() == "[" and self.token(1) == "[":
            self.group()
        word = self.token()
        if word == "namespace" or word == "inline" and self.token(1) == "namespace":
            self.namespace(names)
        elif word == "extern" and self.token(1) == '""' and self.token(2) == "{":
            self.at += 3
            self.scope(names, None)
            self.at += 1
        elif word == "enum":
            self.until(";")
        elif word in CLASS_WORDS and self.is_body():
            self.class_body(names, owner, first)
        elif re.fullmatch(MACRO, word) and self.token(1) == "(" and self.is_macro():
            self.at += 1
            self.group()
        else:
            self.value_or_function(names, owner, begin, first)

    def until(self, end):
        while self.token() and self.token() != end:
            if self.token() in OPEN:
                self.group()
            else:
                self.at += 1
        self.at += 1

    def is_macro(self):
        """A call of a macro that no semicolon ends: the next declaration follows at once."""
        here = self.at
        self.at += 1
        line = self.line()
        self.group()
        after, is_macro = self.token(), self.line() > line
        self.at = here
        return is_macro and after not in ("{", ";", ":", "const", "noexcept", "")

    def namespace(self, names):
        while self.token() not in ("namespace", ""):
            self.at += 1
        self.at += 1
        while self.token() == "[":
            self.group()
        parts = []
        while self.token() not in ("{", "=", ""):
            if self.token() not in ("::", "inline"):
                parts.append(self.token())
            self.at += 1
        if self.token() == "=":
            self.until(";")
            return
        self.at += 1
        self.scope((*names, *(parts or [f"({self.name})"])), None)
        self.at += 1

    def class_head(self):
        """Steps over `class`, attributes and macros before the name, and returns the parts of that."""
        self.at += 1
        while True:
            if self.token() == "[":
                self.group()
            elif self.token() == "alignas" or re.fullmatch(MACRO, self.token()) and self.token(1) == "(":
                self.at += 1
                self.group()
            elif re.fullmatch(MACRO, self.token()):
                self.at += 1
            else:
                return self.path()

    def is_body(self):
        """Whether `class` at the current place has a body or is a declaration of its own: no variable, no result."""
        here = self.at
        self.class_head()
        if self.token() == "final":
            self.at += 1
        after, self.at = self.token(), here
        return after in ("{", ":", ";")

    def class_body(self, names, owner, first):
        parts = self.class_head()
        while self.token() not in ("{", ";", ""):
            if self.token() == "<":
                self.angles()
            elif self.token() == "(":
                self.group()
            else:
                self.at += 1
        if self.token() == ";":
            self.at += 1
            return
        found = Class("", self.name, first)
        self.at += 1
        self.scope((*names, *parts), found)
        found.lines = self.line() - first + 1
        if parts:
            self.classes.append((found, names, parts))
        self.at += 1
        if owner is not None and not parts and self.token() == ";":
            owner.members += found.members  # an anonymous union or struct
        if self.token() != ";" and owner is not None:
            begin = self.at
            self.until(";")
            owner.members += [token for token, _ in self.tokens[begin:self.at - 1] if re.match(r"[A-Za-z_]", token)]
        else:
            self.at += 1

    def value_or_function(self, names, owner, begin, first):
        """Reads the rest of a declaration that is no type."""
        stored = [] if self.tokens[begin][0] in NOT_STORED else None
        path, before = (), ""
        here = []  # what is declared
        while self.token() and self.token() not in (";", "}"):
            token = self.token()
            if token in NOT_STORED:
                stored = []
            if re.fullmatch(MACRO, token) and self.token(1) == "(":
                self.at += 1
                self.group()
            elif token == "operator":
                path, before = (*path, self.operator()) if before == "::" else (self.operator(),), "operator"
            elif re.match(r"[A-Za-z_~]", token) and token not in NO_FUNCTION:
                if token == "requires":
                    self.constraint()
                    continue
                path, before = self.path(), "name"
            elif token == "::":
                self.at += 1
                before = "::"
            elif token == "<":
                self.angles()
            elif token == "(" and self.token(1) == "*":  # a pointer to a function
                path, before = (self.token(2),), ""
                self.group()
            elif token == "(" and before in ("name", "operator") and path:
                if self.parameters(names, path, first):
                    return
                stored, before = [], ""
            elif token == "=":
                here.append(path)
                path = ()
                while self.token() and self.token() not in (";", ","):
                    if self.token() in OPEN:
                        self.group()
                    else:
                        self.at += 1
            elif token == ",":
                here.append(path)
                path, before = (), ""
                self.at += 1
            elif token == "{":
                if not path and not here:  # a body without a head that is known: not followed further
                    self.group()
                    return
                self.group()
                before = ""
            elif token in ("(", "["):
                self.group()
                before = ""
            elif token == ":" and path:  # a bit field
                while self.token() and self.token() not in (";", ","):
                    self.at += 1
            else:
                self.at += 1
                before = ""
        here = [path for path in (*here, path) if path]
        if self.token() == ";":
            self.at += 1
        if owner is not None and stored is None:
            owner.members += [path[-1] for path in here]
        if owner is None:
            self.values += [(path, names) for path in here]

    def parameters(self, names, path, first):
        """Steps over parameters and what follows. Returns whether it was a function with a body, and its end reached."""
        self.group()
        while self.token() and self.token() not in (";", "{", "}", ",", "="):
            token = self.token()
            if token == "requires":
                self.constraint()
            elif token == ":":
                self.initializers()
            elif token == "<":
                self.angles()
            elif token in OPEN:
                self.group()
            else:
                self.at += 1
        if self.token() == "=":
            while self.token() and self.token() != ";":
                self.at += 1
        if self.token() != "{":
            return False
        self.group()
        while self.token() == "catch":
            self.until("{")
            self.at -= 1
            self.group()
        last = self.tokens[self.at - 1][1]
        self.functions.append(Function("::".join((*names, *path)), self.name, first, last - first + 1, names, path))
        return True

    def initializers(self):
        """Steps over a constructor's list of initializers, up to its body."""
        self.at += 1
        while self.token():
            self.path()
            while self.token() == "...":
                self.at += 1
            if self.token() not in ("(", "{"):
                return
            self.group()
            while self.token() == "...":
                self.at += 1
            if self.token() != ",":
                return
            self.at += 1


def spelled(part, plain):
    """Returns a part of a name without the namespaces in its template arguments, or without these."""
    return part.split("<")[0] if plain else re.sub(r"\w+::(?=\w)", "", part)


def resolve(classes, names, parts):
    """Returns the class that `parts` names when said inside `names`, or None."""
    for plain in (False, True):
        said = tuple(spelled(part, plain) for part in parts)
        for depth in range(len(names), -1, -1):
            name = "::".join((*names[:depth], *said))
            if name in classes:
                return classes[name]
    return None


def read(root, *folders):
    """Returns ({name: Class}, [Function], [what cannot be read]) of these folders."""
    return gather([Reader(path.read_text(), path.relative_to(root).as_posix()) for path in tree.files(root, *folders)])


def read_product(root):
    return read(root, "libs", "actors", "apps")


def gather(readers):
    classes, pending, errors = {}, [], []
    for reader in readers:
        reader.scope((), None)
        if reader.token():
            errors.append(f"{reader.name}:{reader.line()}: this script cannot read it: one more }} than {{")
    for reader in readers:
        pending += [(found, names, parts) for found, names, parts in reader.classes]
    # Classes inside no other class come first, so that `struct A::B {...}` finds the scope of A.
    for found, names, parts in sorted(pending, key=lambda one: len(one[2])):
        outer = resolve(classes, names, parts[:-1]) if len(parts) > 1 else None
        parts = [spelled(part, False) for part in parts]
        found.name = f"{outer.name}::{parts[-1]}" if outer else "::".join((*names, *parts))
        if found.file.endswith((".cpp", ".cu")):
            found.sources.add(found.file)
        if found.name in classes and found.file.startswith("tests/"):  # of another program
            found.name = f"({found.file})::{found.name}"
        if found.name in classes:
            errors.append(f"{found.file}:{found.line}: {found.name} is defined twice, see {classes[found.name].file}")
        classes[found.name] = found
    functions = []
    for reader in readers:
        for function in reader.functions:
            owner = resolve(classes, function.scope, function.path[:-1]) if len(function.path) > 1 else None
            if owner is not None:
                owner.lines += function.lines
                function.name = f"{owner.name}::{function.path[-1]}"
                if reader.name.endswith((".cpp", ".cu")):
                    owner.sources.add(reader.name)
            functions.append(function)
        for path, names in reader.values:  # static members
            owner = resolve(classes, names, path[:-1]) if len(path) > 1 else None
            if owner is not None and reader.name.endswith((".cpp", ".cu")):
                owner.sources.add(reader.name)
    return classes, functions, errors


def breaches(classes, functions):
    """Yields (name, rule, what is wrong)."""
    for found in classes.values():
        where = f"{found.file}:{found.line}: {found.name}"
        if found.lines > CLASS_LINES:
            yield found.name, "lines", f"{where} has {found.lines} lines over all its files, the limit is {CLASS_LINES}"
        if len(found.members) > MEMBERS:
            yield found.name, "members", (f"{where} has {len(found.members)} data members, the limit is {MEMBERS} or an ADR "
                                          "(EXEMPT in tests/lint/class_size.py)")
        if len(found.sources) > 1:
            yield found.name, "files", f"{where} has members in {len(found.sources)} files: {', '.join(sorted(found.sources))}"
    for function in functions:
        if function.lines > FUNCTION_LINES:
            yield f"{function.name} in {function.file}", "function", (
                f"{function.file}:{function.line}: {function.name} has {function.lines} lines, the limit is {FUNCTION_LINES}")


def check(root, exempt):
    classes, functions, errors = read_product(root)
    of_tests, functions_of_tests, unread = read(root, "tests")
    errors += unread
    found = [*breaches(classes, functions), *(one for one in breaches(of_tests, functions_of_tests) if one[1] in TEST_RULES)]
    broken = set()
    for name, rule, what in found:
        broken.add((name, rule))
        if rule not in exempt.get(name, {}):
            errors.append(what)
    for name, rules in exempt.items():
        for rule in rules:
            if rule not in RULES:
                errors.append(f"{name}: there is no rule '{rule}' (tests/lint/class_size.py)")
            elif (name, rule) not in broken:
                errors.append(f"{name} keeps the rule '{rule}' now: delete its entry (tests/lint/class_size.py)")
    for name, reasons in exempt.items():
        adr = reasons.get("members")
        if adr is not None and not (adr.startswith("docs/adr/") and (root / adr).is_file()):
            errors.append(f"{name}: more than {MEMBERS} data members need an ADR, '{adr}' is none (tests/lint/class_size.py)")
    return errors


def print_worst(classes, count=10):
    for found in sorted(classes.values(), key=lambda one: -one.lines)[:count]:
        files = " ".join(sorted(found.sources)) or found.file
        print(f"{found.lines:5} lines {len(found.members):3} members  {found.name}  {files}")


# Code that is hard to parse, and what this script must find in it: {class: (lines, members, source files)}, {function: lines}.
TRICKY_HEADER = r'''#pragma once
#define OPEN class Macro {
#ifdef A
namespace a::b {
#else
namespace a::c {
#endif
class Forward;
enum class Kind : int { one, two };
template <class T, class = std::enable_if_t<(sizeof(T) > 1)>>
class Box {
 public:
  explicit Box(T v) noexcept(noexcept(T(v))) : v_(v), list_{1, 2}, f_([](int a) { return a; }) { g(); }
  ~Box() = default;
  T get() const;
  template <class U>
  requires std::same_as<U, T> || (sizeof(U) > 2) void set(U u) { v_ = u; }
  operator bool() const { return true; }
  bool operator()(int) const { return "}" != "{"; }
  bool operator<(const Box& o) const = default;
  friend bool operator==(const Box& l, const Box& r) { return l.v_ == r.v_; }
  auto trailing() -> std::map<int, int> { return {}; }
  class Inner {
    void f();
    int x_ = 1, y_ = {2};
  };

 private:
  using Map = std::map<int, std::function<void()>>;
  static constexpr int kLimit = 3;
  static int count_;
  T v_;  // struct Comment {
  std::vector<int> list_;
  std::function<int(int)> f_ = [](int a) { return a; };
  int (*pointer_)(int) = nullptr;
  int array_[2]{};
  std::map<std::string, std::pair<int, int>> last_ CAFTAN_GUARDED_BY(mutex_);
  struct Pair {
    int a, b;
  } pair_;
  unsigned bits_ : 3 = 0;
};
template <>
struct Box<std::string> {
  int only;
};
template <class T>
T Box<T>::get() const {
  return v_;
}
class CAFTAN_CAPABILITY("mutex") Locked final : public Base<int, (3 > 2)> {
  int x_;
};
struct stat make_stat();
inline const char* const kText = R"(class InText { int a; })";
}  // namespace a::b
'''
TRICKY_SOURCE = r'''#include "box.hpp"
MACRO_WITHOUT_SEMICOLON(a::Box)
namespace a::b {
namespace {
struct Local {
  int x;
};
class Box2 {
  void f();
};
void Box2::f() {
  struct InFunction { int a; };
}
const auto kMake = [] { return 1; };
}  // namespace
template <class T>
void Box<T>::Inner::f() {
  if (a < b) {
    c();
  }
}
int Box<int>::count_ = 0;
std::vector<Box<int>::Inner> free_function(Local l = {}) try {
  return {};
} catch (...) {
}
template class Box<int>;
template <class... F>
struct All : F... {
  using F::operator()...;
};
template <class... F>
All(F...)->All<F...>;
}
'''
TRICKY = ({"a::b::Box": (37, ["v_", "list_", "f_", "pointer_", "array_", "last_", "pair_", "bits_"], 1),
           "a::b::Box::Inner": (10, ["x_", "y_"], 1), "a::b::Box::Pair": (3, ["a", "b"], 0),
           "a::b::Box<string>": (4, ["only"], 0), "a::b::Locked": (3, ["x_"], 0),
           "a::b::(libs/a/src/box.cpp)::Local": (3, ["x"], 1), "a::b::(libs/a/src/box.cpp)::Box2": (6, [], 1), "a::b::All": (4, [], 1)},
          {"a::b::Box::Box": 1, "a::b::Box::set": 2, "a::b::Box::operatorbool": 1, "a::b::Box::operator()": 1,
           "a::b::Box::operator==": 1, "a::b::Box::trailing": 1, "a::b::Box::get": 4, "a::b::Box::Inner::f": 6,
           "a::b::(libs/a/src/box.cpp)::Box2::f": 3, "a::b::free_function": 4})


def reading_test():
    """Yields how the reading of the tricky files differs from what they hold."""
    readers = [Reader(TRICKY_HEADER, "libs/a/include/box.hpp"), Reader(TRICKY_SOURCE, "libs/a/src/box.cpp")]
    classes, functions, errors = gather(readers)
    yield from errors
    found = ({name: (one.lines, one.members, len(one.sources)) for name, one in classes.items()},
             {one.name: one.lines for one in functions})
    for expected, got in zip(TRICKY, found):
        for name in sorted({*expected, *got}):
            if expected.get(name) != got.get(name):
                yield f"{name}: expected {expected.get(name)}, read {got.get(name)}"


def lines(count, text="  f();\n"):
    return text * count


GOOD = {
    "libs/a/include/a.hpp": "class A {\n public:\n  void f();\n  void g();\n" +
                            lines(20, "  int m_;\n") + "};\n",
    "libs/a/src/a.cpp": "void A::f() {\n" + lines(58) + "}\n",
    "libs/a/src/b.cpp": "class OfB {\n};\nvoid free_function() {\n" + lines(58) + "}\n",
    "libs/a/src/known.cpp": "struct Known {\n" + lines(21, "  int x;\n") + "};\n",
    "docs/adr/0001-a.md": "# A\n",
    "tests/a/large.cpp": "class Large {\n" + lines(501) + "};\nclass A {\n};\n",
    "tests/a/other.cpp": "class Large {\n};\n",
}
TEST_EXEMPT = {"Known": {"members": "docs/adr/0001-a.md"}}
BAD = {
    "A has members in 2 files": {"libs/a/src/b.cpp": "void A::g() {\n}\n"},
    "B has 501 lines": {"libs/a/include/b.hpp": "class B {\n" + lines(499, "  void f();\n") + "};\n"},
    "C has 505 lines": {"libs/a/include/c.hpp": "class C {\n" + lines(441, "  void f();\n") + "};\n",
                        "libs/a/src/c.cpp": "void C::f() {\n" + lines(60) + "}\n"},
    "A has 21 data members": {"libs/a/include/a.hpp": GOOD["libs/a/include/a.hpp"].replace("int m_;", "int m_, n_;", 1)},
    "A::f has 61 lines": {"libs/a/src/a.cpp": "void A::f() {\n" + lines(59) + "}\n"},
    "free_function has 61 lines": {"libs/a/src/b.cpp": "void free_function() {\n" + lines(59) + "}\n"},
    "'docs/adr/0001-a.md' is none": {"docs/adr/0001-a.md": None},
    "Known keeps the rule": {"libs/a/src/known.cpp": "struct Known {};\n"},
    "T has members in 2 files": {"tests/a/t.hpp": "class T {\n void f();\n void g();\n};\n",
                                 "tests/a/t.cpp": "void T::f() {\n}\n", "tests/a/u.cpp": "void T::g() {\n}\n"},
    "in_a_test has 61 lines": {"tests/a/t.cpp": "void in_a_test() {\n" + lines(59) + "}\n"},
    "one more } than {": {"apps/a.cpp": "void f() {}}\nint a;\n"},
    "is defined twice": {"apps/a.cpp": "class A {\n};\n"},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        if problems := [*reading_test()]:
            tree.report(problems)
        tree.self_test(lambda root: check(root, TEST_EXEMPT), GOOD, BAD)
    if sys.argv[2:] == ["--worst"]:
        print_worst(read_product(pathlib.Path(sys.argv[1]))[0])
    tree.report(check(pathlib.Path(sys.argv[1]), EXEMPT))
