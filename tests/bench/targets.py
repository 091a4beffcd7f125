"""The targets of the design, and how far one run is from each."""

PAUSES = ("0", "30 us", "1 ms", "1 ms asleep")
# Over rings, in raw round trips over a Unix-domain socket: where waits are short enough to spin, and where both sleep.
SHM = {"0": 0.7, "30 us": 0.7, "1 ms": 1.4, "1 ms asleep": 1.4}


def _get(results, title, side, key):
    answer = results.get((title, side))
    return None if answer is None else answer.get(key)


def _show(value, unit):
    if value is None:
        return "not measured"
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def distance(value, limit, at_least=False):
    """`met` with its margin, or how many times too much or too little."""
    if value is None or limit is None:
        return "-"
    if at_least:
        return f"met ({value / limit:.2f} x)" if value >= limit else f"{limit / max(value, 1e-9):.2f} x short"
    return f"met ({value / limit:.2f} of it)" if value <= limit else f"{value / limit:.2f} x over"


def _ratio_row(name, value, base_name, base, limit, limit_text=None, unit="us"):
    ratio = value / base if value is not None and base else None
    target = limit_text or (f"<= {limit:g}" if limit else "none")
    return [name, _show(value, unit), f"{base_name} {_show(base, unit)}", "-" if ratio is None else f"{ratio:.2f}",
            target, distance(ratio, limit)]


def _value_row(name, value, limit, unit, at_least=False):
    target = f"{'>=' if at_least else '<='} {limit:g} {unit}"
    return [name, _show(value, unit), "-", "-", target, distance(value, limit, at_least)]


def _small_calls_over_rings(results):
    rows = []
    for pause, limit in SHM.items():
        title = f"echo of 4 floats, pause {pause}"
        raw = _get(results, title, "raw unix", "p50_us")
        for side in ("caftan shm", "caftan shm off"):
            rows.append(_ratio_row(f"small call, {side.removeprefix('caftan ')}, pause {pause}",
                                   _get(results, title, side, "p50_us"), "raw unix", raw,
                                   limit if side == "caftan shm" else None))
    title = "echo of 4 floats, pause 0"
    rows.append(_ratio_row("small call, shm, pause 0, p99", _get(results, title, "caftan shm", "p99_us"),
                           "shm off", _get(results, title, "caftan shm off", "p99_us"), None))
    own, peer = (_get(results, title, "caftan shm", key) for key in ("cpu_own_us", "cpu_peer_us"))
    rows.append(_value_row("CPU per call, both processes, shm, pause 0", None if own is None or peer is None else own + peer,
                           12, "us"))
    for key, who in (("own_percent", "caller"), ("peer_percent", "peer")):
        rows.append(_value_row(f"idle worker, shm, {who}", _get(results, "idle", "caftan shm", key), 0.5, "% of a core"))
    return rows


def _small_calls(results):
    rows = []
    for kind in ("unix", "tcp"):
        for pause in PAUSES:
            title = f"echo of 4 floats, pause {pause}"
            rows.append(_ratio_row(f"small call, {kind}, pause {pause}",
                                   _get(results, title, f"caftan {kind}", "p50_us"), f"raw {kind}",
                                   _get(results, title, f"raw {kind}", "p50_us"), 1.3))
    title = "echo of 4 floats, pause 0"
    call = _get(results, title, "caftan unix", "p50_us")
    rows.append(_ratio_row("small call, unix, pause 0", call, "reference default",
                           _get(results, title, "reference default", "p50_us"), 1 / 8, "<= 1/8"))
    rows.append(_ratio_row("small call, unix, pause 0, p99.9", _get(results, title, "caftan unix", "p999_us"),
                           "reference default", _get(results, title, "reference default", "p999_us"), None))
    for name, key, limit in (("method through a reference", "method through a reference", 1.2),
                             ("remote() + to_here", "remote + to_here", 3)):
        rows.append(_ratio_row(name, _get(results, key, "caftan unix", "p50_us"), "small call", call, limit))
    rows.append(_ratio_row("one hop forward + backward",
                           _get(results, "one hop forward + backward", "caftan unix", "p50_us"), "reference default",
                           _get(results, "one hop forward + backward", "reference default", "p50_us"), 1 / 5, "<= 1/5"))
    return rows


def _large_echoes(results):
    rows = []
    for size, limit, text in (("1 MiB", 1 / 4, "<= 1/4"), ("16 MiB", 1 / 1.3, "<= 1/1.3")):
        title = f"echo of {size}"
        value = _get(results, title, "caftan unix", "p50_us")
        rows.append(_ratio_row(f"{size} echo, unix", value, "reference default",
                               _get(results, title, "reference default", "p50_us"), limit, text))
        rows.append(_ratio_row(f"{size} echo, unix", value, "raw unix",
                               _get(results, title, "raw unix", "p50_us"), 1.2))
    for title, limit in (("echo of 1 MiB", 0.4), ("echo of 16 MiB", 0.35), ("fresh result of 1 MiB", 0.75),
                         ("fresh result of 16 MiB", 0.65)):
        rows.append(_ratio_row(f"{title}, shm", _get(results, title, "caftan shm", "p50_us"), "raw unix",
                               _get(results, title, "raw unix", "p50_us"), limit))
    return rows


def _costs(results):
    rows = []
    for pause in PAUSES:
        title = f"echo of 4 floats, pause {pause}"
        own, peer = (_get(results, title, "caftan unix", key) for key in ("cpu_own_us", "cpu_peer_us"))
        both = None if own is None or peer is None else own + peer
        rows.append(_value_row(f"CPU per call, both processes, pause {pause}", both, 20, "us"))
        rows.append(_ratio_row(f"CPU per call, pause {pause}", both, "its wall time",
                               _get(results, title, "caftan unix", "mean_us"), 2, "<= 2 when spinning"))
    for kind in ("unix", "tcp"):
        for key, who in (("own_percent", "caller"), ("peer_percent", "peer")):
            rows.append(_value_row(f"idle worker, {kind}, {who}", _get(results, "idle", f"caftan {kind}", key), 0.5,
                                   "% of a core"))
    for place, who in (("own", "user's"), ("peer", "owner's")):
        # Freed memory that is used again does not show in the resident size, fragments not in the live bytes.
        sizes = [_get(results, "10,000 idle references", "caftan unix", f"{place}_{kind}_bytes")
                 for kind in ("live", "resident")]
        value = None if None in sizes else max(sizes) / 1024
        rows.append(_value_row(f"idle RRef, {who} side", value, 3, "KiB"))
    rows.append(_value_row("killed peer noticed after its sockets closed",
                           _get(results, "killed peer", "caftan unix", "noticed_ms"), 10, "ms"))
    rows.append(_value_row("start of 5 processes beyond loading libtorch",
                           _get(results, "start of 5 processes", "caftan start", "beyond_load_ms"), 1000, "ms"))
    return rows


def _groups(results):
    rows = []
    for kind in ("shm", "unix"):
        for size in ("", ", 256 KiB"):
            rows.append(_ratio_row(f"broadcast to 16{size}, {kind}",
                                   _get(results, f"broadcast to 16{size}", f"caftan group {kind}", "p50_us"), "16 calls in a row",
                                   _get(results, f"16 calls in a row{size}", f"caftan group {kind}", "p50_us"), 1 / 4, "<= 1/4"))
    for kind in ("shm", "unix", "tcp", "loopback"):
        sent, called = (_get(results, title, f"caftan {kind}", "calls_per_s")
                        for title in ("one-way notes", "64 in flight, a note"))
        ratio = None if sent is None or called is None else sent / called
        rows.append(_value_row(f"one-way calls, {kind}, in calls/s with 64 in flight", ratio, 2, "x", at_least=True))
    return rows


def target_rows(results):
    """Returns rows of (measure, value, compared with, ratio, target, distance); `results` as in report.py."""
    rates = []
    for title, limit in (("64 in flight", 250e3), ("64 in flight, brief", 500e3)):
        rates.append(_value_row(f"{title}, unix", _get(results, title, "caftan unix", "calls_per_s"), limit, "calls/s",
                                at_least=True))
    return _small_calls_over_rings(results) + _small_calls(results) + rates + _groups(results) + _large_echoes(results) + _costs(results)
