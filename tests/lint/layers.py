"""Refuses includes against the order of the layers and of the rooms of actors/src, heavy headers in public, and `catch` away from the named borders.

usage: layers.py ROOT | --graph ROOT | --self-test

--graph prints the floors of libs, actors and apps, and those of the rooms of actors/src, with what each includes.
"""
import pathlib
import re
import sys

import tree

# What each folder includes of the others, in the order of docs/architecture.md: exactly this. A test refuses an arrow that
# is not listed, one that no file needs, and a circle.
USES = {
    "base": set(),
    "wire": {"base"},
    "net": {"base", "wire"},
    "transport": {"base", "wire", "net"},
    "remote": {"base", "wire", "transport"},
    "tensor": {"base", "wire"},
    "rpc": {"base", "wire", "tensor"},
    "collectives": {"base", "wire", "tensor", "rpc"},
    "autograd": {"base", "wire", "tensor", "rpc"},
    "optim": {"base", "wire", "tensor", "rpc", "autograd"},
    "nn": {"base", "wire", "tensor", "rpc", "collectives", "autograd", "optim"},
    "app": {"base"},
    "svg": {"base"},
    "results": {"base", "app", "svg"},
    "rl": {"base"},
    "run": {"base", "wire"},
    "launchers": {"base", "app"},
    "sim": {"base", "wire"},
    "sim_tensor": {"base", "tensor", "sim"},
    "actors": {"base", "wire", "net", "transport", "remote", "tensor", "rpc", "collectives", "autograd", "optim", "nn", "app", "rl", "results", "run", "launchers", "sim", "sim_tensor"},
    "testing": {"base", "wire", "transport", "rpc", "actors"},
    "apps": {"base", "wire", "net", "tensor", "rpc", "autograd", "collectives", "optim", "app", "svg", "sim", "rl", "nn", "actors"},
}
# What the folders of actors/src include of the others, exactly; what the rooms hold is in their README.md. Each other
# folder is a service: it includes "service", and "worker" includes the folder.
ROOMS = {
    "service": set(),
    "worker": {"service"},
    "role": {"worker"},
    "launch": {"role", "worker"},
}
NO_TORCH = {"base", "wire", "net", "transport", "remote", "run", "launchers", "sim", "svg", "results"}
# The only places that know CAF.
CAF = {"remote", "actors", "cmake"}  # cmake: the precompiled header
# Where an exception of a library or of user code becomes an Error. One file per border; say why when you add one.
CATCH = {
    "libs/base/src/log.cpp": "spdlog",
    "libs/base/src/settings_document.cpp": "toml++",
    "libs/wire/include/caftan/wire/archive.hpp": "Boost.Serialization and the user's serialize()",
    "libs/wire/src/archive.cpp": "what those threw becomes an Error",
    "libs/tensor/include/caftan/tensor/internal/torch_errors.hpp": "c10::Error",
    "libs/tensor/src/torch_errors.cpp": "what it threw becomes an Error",
    "libs/rpc/include/caftan/rpc/packing.hpp": "archives, where the number of the argument is known",
    "libs/rpc/src/packing.cpp": "archives, in the prologue of a call",
    "libs/rpc/src/ambient.cpp": "archives, in the held objects of a call",
    "libs/rpc/src/operators.cpp": "the dispatcher's schema check",
    "libs/autograd/src/engine.cpp": "the run of nodes and hooks",
    "libs/rl/src/checked_environment.cpp": "the code of a user's environment",
    "libs/rpc/include/caftan/rpc/user_code.hpp": "the call of a user function",
    "libs/rpc/src/user_code.cpp": "what it threw becomes an Error",
    "libs/sim/src/model_code.cpp": "handlers, serialize and build of a model",
    "actors/src/launch/command_line.cpp": "CLI11",
}
# Headers that cost seconds for each file that includes them: how many files may, and where.
HEAVY = {
    "spdlog/": (1, "libs/base/src/log.cpp"),
    "CLI/": (1, ""),
    "nlohmann/json.hpp": (3, ""),
    "boost/asio": (99, "libs/transport/src/"),
    "boost/beast": (99, "libs/transport/src/"),
}
# Public headers that read internal ones, and what they hold by value of them; caftan/caftan.hpp brings none of these.
READS_INTERNAL = {
    "libs/tensor/include/caftan/tensor/codec.hpp": "the segments of encoded tensors",
    "libs/transport/include/caftan/transport/poller.hpp": "the pool of blocks of an executor",
    "libs/transport/include/caftan/transport/threaded_executor.hpp": "the parts of the executor",
}
NEVER_PUBLIC = ("torch/torch.h", "caf/all.hpp", "spdlog/", "CLI/", "nlohmann/json.hpp", "boost/asio", "boost/beast")
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
CATCHES = re.compile(r"\bcatch\s*\(")


def layer_of(path):
    return path.parts[1] if path.parts[0] == "libs" else path.parts[0]


def room_of(path):
    """Returns the room of a file below actors/src, "" for one that lies in none; None elsewhere."""
    if path.parts[:2] != ("actors", "src"):
        return None
    return path.parts[2] if len(path.parts) == 4 else ""


def may_use(room, used):
    """Returns whether a room of actors/src may include headers of another one."""
    if room == "worker" and used not in ROOMS:
        return True
    return used == room or used in ROOMS.get(room, {"service"})


def check_rooms(path, header, quoted):
    """Yields what is wrong with one include of a file of actors/src."""
    room = room_of(path)
    if not room or not quoted or header.startswith("caftan/"):
        return
    used = header.split("/")[0] if "/" in header else ""
    if not used:
        yield f"{header}: actors/src includes its own headers as room/file.hpp"
    elif not may_use(room, used):
        yield f"the room {room} may not include {header}"


def check_include(name, header, layer, public):
    """Yields what is wrong with one include of the file `name`."""
    own = re.match(r"(?:caftan/)?(%s)/" % "|".join(USES), header)
    used = own.group(1) if own else "actors" if header == "caftan/caftan.hpp" else None
    if layer in USES and used and used != layer and used not in USES[layer]:
        yield f"{layer} may not include {header}: {used} is not below it"
    if header.startswith("tests/") or "/tests/" in header:
        yield f"nothing but tests includes {header}"
    if header.startswith("caf/io/") or header.startswith("caf/openssl/"):
        yield f"{header}: Caftan has its own transport"
    if header.startswith("caf/detail/") and layer != "remote":
        yield f"{header}: caf/detail only in libs/remote"
    if header.startswith("caf/") and layer not in CAF:
        yield f"{header}: CAF only in libs/remote and actors"
    if layer in NO_TORCH and re.match(r"(torch|ATen|c10)/", header):
        yield f"{header}: {layer} does not link libtorch"
    for heavy, (_, where) in HEAVY.items():
        if header.startswith(heavy) and where and not name.startswith(where):
            yield f"{header}: only in {where}"
    if public and "/internal/" not in name and "/internal/" in header and name not in READS_INTERNAL:
        yield f"{header} in a public header: declare the class, move the definition, or say why (READS_INTERNAL)"
    if public and header.startswith(NEVER_PUBLIC):
        yield f"{header} in a public header: every user pays for it"


def check_umbrella(root):
    """Yields the internal headers that a user of caftan/caftan.hpp reads, each with the header that includes it."""
    seen = set()
    left = ["caftan/caftan.hpp"]
    while left:
        header = left.pop()
        for path in [*root.glob(f"libs/*/include/{header}"), *root.glob(f"actors/include/{header}")]:
            included = [found.group(1) for _, line in tree.code_lines(path) if (found := INCLUDE.match(line))]
            for name in included:
                if name.startswith("caftan/") and "/internal/" in name:
                    yield f"{path.relative_to(root).as_posix()}: {name} is internal: caftan/caftan.hpp brings it to users"
            left += [name for name in included if name.startswith("caftan/") and name not in seen]
            seen.update(included)


def arrows(root):
    """Returns {folder: {folder that its files include}} of libs, actors and apps, and of the rooms of actors/src."""
    layers, rooms = {}, {}
    for path in tree.files(root, "libs", "actors", "apps"):
        relative = pathlib.Path(path.relative_to(root).as_posix())
        layer, room = layer_of(relative), room_of(relative)
        layers.setdefault(layer, set())
        if room:
            rooms.setdefault(room, set())
        for _, line in tree.code_lines(path):
            include = INCLUDE.match(line)
            header = include.group(1) if include else ""
            if header.startswith("caftan/"):
                used = header.split("/")[1] if header != "caftan/caftan.hpp" else "actors"
                layers[layer].update({used} - {layer})
            elif room and '"' in line and "/" in header:
                rooms[room].update({header.split("/")[0]} - {room})
    return layers, rooms


def floors(uses):
    """Returns [[folder]]: each includes only folders of floors before its own. What is left of a circle comes last."""
    left = {folder: {used for used in all_used if used in uses} for folder, all_used in uses.items()}
    found = []
    while left:
        lowest = sorted(folder for folder, all_used in left.items() if not all_used)
        if not lowest:
            return [*found, sorted(left)], True
        found.append(lowest)
        left = {folder: all_used - set(lowest) for folder, all_used in left.items() if folder not in lowest}
    return found, False


def check_arrows(root):
    """Yields the arrows that are listed and that no file needs, and the circles."""
    layers, rooms = arrows(root)
    if (root / "tests/lint/layers.py").is_file():  # the whole tree
        for layer, listed in USES.items():
            for used in sorted(listed - layers.get(layer, set())):
                yield f"no file of {layer} includes {used}: take it out of USES (tests/lint/layers.py)"
        for room, all_used in rooms.items():
            for used in sorted(ROOMS.get(room, {"service"}) - all_used):
                yield f"no file of the room {room} includes {used}: take it out of ROOMS (tests/lint/layers.py)"
    for uses in (layers, rooms):
        order, circle = floors(uses)
        if circle:
            yield f"a circle of includes among {', '.join(order[-1])}"


def print_graph(root):
    for title, uses in zip(("libs, actors, apps", "rooms of actors/src"), arrows(root)):
        order, _ = floors(uses)
        count = sum(len(all_used) for all_used in uses.values())
        print(f"{title}: {len(uses)} folders on {len(order)} floors, {count} arrows")
        for number, floor in reversed(list(enumerate(order))):
            for folder in floor:
                print(f"  {number}  {folder:10} {' '.join(sorted(uses[folder]))}")


def check(root):
    errors = [*check_umbrella(root), *check_arrows(root)]
    users = {heavy: [] for heavy in HEAVY}
    catching = set()
    for path in tree.files(root, "libs", "actors", "apps"):
        name = path.relative_to(root).as_posix()
        if room_of(pathlib.Path(name)) == "":
            errors.append(f"{name}: not in a room of actors/src (ROOMS in tests/lint/layers.py)")
        layer, public = layer_of(pathlib.Path(name)), "/include/" in name
        for number, line in tree.code_lines(path):
            include = INCLUDE.match(line)
            if include:
                header = include.group(1)
                wrong = [*check_include(name, header, layer, public),
                         *check_rooms(pathlib.Path(name), header, '"' in line)]
                errors += [f"{name}:{number}: {what}" for what in wrong]
                for heavy in HEAVY:
                    if header.startswith(heavy) and name not in users[heavy]:
                        users[heavy].append(name)
            elif CATCHES.search(line):
                catching.add(name)
                if name not in CATCH:
                    errors.append(f"{name}:{number}: catch away from the named borders (CATCH in tests/lint/layers.py)")
    errors += [f"{name}: has no catch, but stands in CATCH (tests/lint/layers.py)"
               for name in CATCH if (root / name).is_file() and name not in catching]
    for heavy, (limit, _) in HEAVY.items():
        if len(users[heavy]) > limit:
            errors.append(f"{heavy} is included by {len(users[heavy])} files, {limit} may: {', '.join(users[heavy])}")
    return errors


GOOD = {
    "libs/rpc/include/caftan/rpc/call.hpp": '#include "caftan/tensor/codec.hpp"\n// catch (...) in a comment\n',
    "libs/base/src/log.cpp": "#include <spdlog/spdlog.h>\nvoid f() { try { g(); } catch (...) {} }\n",
    "libs/base/src/settings_document.cpp": "void f() { try { g(); } catch (const toml::parse_error&) {} }\n",
    "libs/remote/src/proxy.cpp": "#include <caf/detail/shared_spinlock.hpp>\n",
    "actors/worker.cpp": '#include "caftan/rpc/call.hpp"\n',
    "actors/src/rref/a.cpp": '#include "caftan/rpc/call.hpp"\n#include "rref/a.hpp"\n#include "service/b.hpp"\n',
    "actors/src/launch/a.cpp": '#include <sys/wait.h>\n#include "role/a.hpp"\n',
    "apps/caftan/main.cpp": '#include "caftan/caftan.hpp"\n',
    "actors/include/caftan/caftan.hpp": '#include "caftan/rpc/call.hpp"\n',
    "libs/rpc/include/caftan/rpc/internal/serve.hpp": '#include "caftan/rpc/internal/fork_table.hpp"\n',
}
BAD = {
    "autograd is not below it": {"libs/rpc/src/a.cpp": '#include "caftan/autograd/context.hpp"\n'},
    "actors is not below it": {"libs/rpc/src/a.cpp": '#include "actors/worker.hpp"\n'},
    "apps is not below it": {"actors/a.cpp": '#include "apps/cartpole/agent.hpp"\n'},
    "caf/detail only": {"actors/a.cpp": "#include <caf/detail/scope_guard.hpp>\n"},
    "own transport": {"libs/remote/src/a.cpp": "#include <caf/io/all.hpp>\n"},
    "CAF only in": {"libs/transport/src/a.cpp": "#include <caf/actor.hpp>\n"},
    "remote is not below it": {"libs/transport/src/a.cpp": '#include "caftan/remote/internal/address.hpp"\n'},
    "does not link libtorch": {"libs/net/src/a.cpp": "#include <ATen/core/Tensor.h>\n"},
    "only in libs/base/src/log.cpp": {"libs/net/src/a.cpp": "#include <spdlog/spdlog.h>\n"},
    "torch/torch.h in a public header": {"libs/nn/include/caftan/nn/m.hpp": "#include <torch/torch.h>\n"},
    "caf/all.hpp in a public header": {"libs/rpc/include/caftan/rpc/a.hpp": "#  include <caf/all.hpp>\n"},
    "CLI/ is included by 2 files": {"apps/a.cpp": "#include <CLI/CLI.hpp>\n", "apps/b.cpp": "#include <CLI/App.hpp>\n"},
    "catch away": {"actors/worker.cpp": "void f() { try { g(); } catch (...) {} }\n"},
    "has no catch": {"libs/wire/src/archive.cpp": "int a;\n"},
    "the room rref may not include worker/": {"actors/src/rref/b.cpp": '#include "worker/worker_core.hpp"\n'},
    "the room autograd may not include rref/": {"actors/src/autograd/b.hpp": '#include "rref/rref_host.hpp"\n'},
    "as room/file.hpp": {"actors/src/rref/b.cpp": '#include "a.hpp"\n'},
    "not in a room": {"actors/src/b.cpp": "int a;\n"},
    "is internal": {"actors/include/caftan/caftan.hpp": '#include "caftan/rpc/serve.hpp"\n',
                    "libs/rpc/include/caftan/rpc/serve.hpp": '#include "caftan/rpc/internal/fork_table.hpp"\n'},
    "declare the class": {"libs/rpc/include/caftan/rpc/serve.hpp": '#include "caftan/rpc/internal/fork_table.hpp"\n'},
    "a circle of includes among base, wire": {"libs/wire/src/a.cpp": '#include "caftan/base/error.hpp"\n',
                                              "libs/base/src/a.cpp": '#include "caftan/wire/frame.hpp"\n'},
    "no file of optim includes autograd": {"tests/lint/layers.py": "", "libs/optim/src/a.cpp": "int a;\n"},
    "nothing but tests": {"libs/rpc/src/a.cpp": '#include "tests/support/fake.hpp"\n'},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    if sys.argv[1:2] == ["--graph"]:
        print_graph(pathlib.Path(sys.argv[2]))
        sys.exit(0)
    tree.report(check(pathlib.Path(sys.argv[1])))
