"""Refuses the words that docs/glossary.md has replaced, and sentences without a subject that one could point at: in comments,
pages and messages to users the old words of PROSE, in code those of NAMES.

usage: words.py ROOT | --self-test
"""
import pathlib
import re
import sys

import tree

ANSWER = r"(?:an?|the|its|one|no|each|every|their|first|last|late|any) answers?"
WORLD = "the world|its world|own world|an empty world"
# In names of tests, too.
IN_NAMES = r"\w*(?:Nobody|Somebody|Everybody|Whoever|ThoseWho|[Tt]old|(?:The|A)Head[A-Z])\w*"
NOBODY = {IN_NAMES: "the user of that name"}
# What is said instead: name the thing.
PROSE = {
    r"nobody|no one": "name what is missing: no thread, no caller, no worker",
    r"somebody|someone|anybody|anyone": "name the thread, the caller, the worker",
    r"everybody|everyone": "all members, every caller",
    r"whoever|whomever|those who|one who": "name the caller, the sender, the worker",
    # `tell` is the name of one-way calls.
    r"told|tells|telling|(?<![`:./])tell(?![`<:.])": "send, report, show, distinguish; gets, learns",
    r"responses?": "reply; the kind of a frame is `response`",
    ANSWER: "reply; the verb is to answer or to reply",
    r"member 0|where the others meet": "the coordinator",
    WORLD: "the members, the job",
    r"settled?|settles|settling": "confirm, complete, conclude, decide: docs/glossary.md",
    r"the body of code|bodies of code": "span",
    r"consistent cut|cut a checkpoint": "make a checkpoint",
}
# Names that are gone, and what the thing is called: docs/glossary.md.
NAMES = {
    "Way": "SendSlot", "open_way": "reserve", "Sharing": "OutgoingRRefs", "RRefWorld": "MemberPorts", "RunWorld": "RunAddresses",
    "RecordedBody": "CodeSpan", "BodyIndex": "SpanIndex", "add_bodies": "add_spans", "WorldEntry": "MemberEntry",
    "begin_body": "begin_span", "end_body": "end_span", "DoormanActor": "ClosedContextsActor",
    "FrameReading": "NoUserCode", "reads_frames": "inside_reading_wait", "in_words_of": "prefixed",
    "told_with_process": "with_pid", "tell_end": "report_end", "kOwnWords": "kLateReportGrace", "Life": "WorkerLife",
    "send_request": "start_call, submit", "submit_request": "start_call", "begin_request": "fill_request",
    "is_head": "is_coordinator", "kHead": "kCoordinator", "has_met_all": "start_is_over", "settle": "what ends: docs/glossary.md",
    "QuietPosts": "DeferWakeups", "reads_for_wait": "inside_reading_wait", "keep_watch": "backstop",
    "settled": "outcome", "settled_status": "outcome_status", "is_settled": "is_complete",
    "settled_or": "has_outcome_or", "run_body": "run_span", "Bodies": "Spans",
    IN_NAMES: "name the thing",
    "ResponseSink": "ReplySink", "on_response": "on_reply", "Greeting": "HandshakeIo", "Greeted": "Accepted",
}
# {file or folder: {word: why it stays}}
EXEMPT = {
    "docs/glossary.md": {word: "lists the old words" for word in PROSE},
    "tests/lint/words.py": {word: "this list" for word in PROSE},
    "tests/support/as_nobody.hpp": NOBODY,
    "tests/unit/app/check_files_test.cpp": NOBODY,
    "tests/unit/app/placement_test.cpp": NOBODY,
    "tests/unit/app/run_directory_test.cpp": NOBODY,
    "tests/bench/": {ANSWER: "what a side of a benchmark prints"},
    "tests/support/histories.hpp": {WORLD: "the models' own class"},
    "tests/unit/rpc/rref_model_": {"settle": "the model's own: it delivers all messages", WORLD: "the model's own class"},
    "tests/unit/autograd/backward_model_": {"settle": "the model's own: it ends a pass at one worker", WORLD: "the model's own class"},
}
CODE = (".hpp", ".cpp", ".cu")
TEXT = (".md", ".py", ".toml", ".txt", ".cmake", ".sh")
PIECES = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")|(?P<text>"(?:\\.|[^"\\\n])*")'
                    r"|(?P<char>'(?:\\.|[^'\\\n])')", re.S)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def of_code(text):
    """Returns (comments, strings, the rest) of C++ text, each with the places of the others blank."""
    comments, strings, rest, at = [], [], [], 0
    for match in PIECES.finditer(text):
        between, piece = text[at:match.start()], match.group(0)
        is_comment = match.group("comment") is not None
        comments += [blank(between), piece if is_comment else blank(piece)]
        strings += [blank(between), blank(piece) if is_comment else piece]
        rest += [between, blank(piece)]
        at = match.end()
    tail = text[at:]
    return "".join((*comments, blank(tail))), "".join((*strings, blank(tail))), "".join((*rest, tail))


def without_quotes(text):
    """Returns prose without what stands between backticks, in fences, or indented as a picture."""
    text = re.sub(r"^```.*?^```", lambda m: blank(m.group(0)), text, flags=re.S | re.M)
    text = re.sub(r"^    [^\n]*(?:──|---->|<---)[^\n]*", lambda m: blank(m.group(0)), text, flags=re.M)
    return re.sub(r"`[^`\n]*`", lambda m: blank(m.group(0)), text)


def lines_with(text, words):
    """Yields (line, word, what was said) for each of `words` ({word: pattern}) in the text."""
    for word, pattern in words.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, word, " ".join(re.sub(r"//+", " ", match.group(0)).split())


def sources(root):
    for path in tree.files(root, "libs", "actors", "apps", "tests", "docs", "configs", suffixes=CODE + TEXT):
        yield path
    for path in sorted((*root.glob("*.md"), *root.glob("caftan"))):
        if path.is_file():
            yield path


def check(root):
    prose = {word: re.compile(r"\b(?:" + word.replace(" ", r"\s+(?://+\s*)?") + r")\b", re.I) for word in PROSE}
    names = {word: re.compile(rf"\b{word}\b") for word in NAMES}
    any_of = re.compile("|".join(pattern.pattern for pattern in (*prose.values(), *names.values())), re.I)
    errors = []
    for path in sources(root):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        if not any_of.search(text):
            continue
        said, code = [text], ""
        if path.suffix in CODE:
            comments, strings, code = of_code(text)
            said = [without_quotes(comments), *([] if name.startswith("tests/") else [strings])]
        elif path.suffix == ".md":
            said = [without_quotes(text)]
        exempt = {word for key, words in EXEMPT.items() if name.startswith(key) for word in words}
        for line, word, match in (*(found for one in said for found in lines_with(one, prose)), *lines_with(code, names)):
            if word not in exempt:
                errors.append(f"{name}:{line}: '{match}': {({**PROSE, **NAMES})[word]} (docs/glossary.md)")
    return errors


GOOD = {
    "libs/a/src/a.cpp": "// No caller waits for it.\nint nobody = 1;\nconst char* kKind = \"reply\";\n// The frame is a `response`.\n",
    "tests/unit/a_test.cpp": 'call("nobody");\n',
    "docs/a.md": "`response` is a kind.\n\n    open ── nobody ──> open\n\n```mermaid\nA->>B: response\n```\n",
    "docs/glossary.md": "nobody, whoever\n",
    "tests/unit/rpc/rref_model_world.hpp": "void settle();\n",
}
BAD = {
    "libs/a/src/b.cpp:2: 'Nobody'": {"libs/a/src/b.cpp": "int a;\n// Nobody waits.\n"},
    "libs/a/src/b.cpp:2: 'told'": {"libs/a/src/b.cpp": "// The peer is\n// told so.\n"},
    "'whoever'": {"docs/b.md": "It is whoever comes.\n"},
    "'response'": {"docs/b.md": "The response is late.\n"},
    "'somebody'": {"apps/b.cpp": 'const char* kText = "somebody is missing";\n'},
    "'SE1_TheHeadIsFirst'": {"tests/unit/b_test.cpp": "TEST(A, SE1_TheHeadIsFirst) {}\n"},
    "'why_told'": {"actors/src/b.cpp": "int why_told;\n"},
    "'settle'": {"actors/src/b.cpp": "void settle();\n"},
    "'RunWorld'": {"actors/src/b.cpp": "RunWorld world;\n"},
    "README.md:1: 'everybody'": {"README.md": "For everybody.\n"},
    "tests/lint/a.py:1: 'nobody'": {"tests/lint/a.py": "# nobody\n"},
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        tree.self_test(check, GOOD, BAD)
    tree.report(check(pathlib.Path(sys.argv[1])))
