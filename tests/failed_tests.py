"""Prints what the failed tests of a CTest run said, once more and short, so that the end of a long log has the reason.

Reads the JUnit file that `ctest --output-junit` leaves. Of each failed test: GoogleTest's failures, else its last lines.
"""

import sys
import xml.etree.ElementTree as ElementTree

PER_FAILURE = 8  # lines of one EXPECT or ASSERT
PER_TEST = 40
TESTS = 20


def reason(output):
    """Returns the lines of `output` that say why a test failed."""
    lines = output.rstrip().splitlines()
    kept = []
    for i, line in enumerate(lines):
        if ": Failure" in line:
            kept += lines[i:i + PER_FAILURE]
    if not kept:
        kept = lines
    return kept[-PER_TEST:] if not any(": Failure" in line for line in kept) else kept[:PER_TEST]


def main(path):
    try:
        suite = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        print(f"failed_tests: {path}: {error}", file=sys.stderr)
        return 1
    failed = [case for case in suite.iter("testcase") if case.get("status") == "fail"]
    for case in failed[:TESTS]:
        print(f"---- {case.get('name')}")
        for line in reason(case.findtext("system-out") or ""):
            print("  " + line)
    if len(failed) > TESTS:
        print(f"---- and {len(failed) - TESTS} more")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
