"""Checks of the program tests: each prints a line, and the exit status says whether one failed."""

failures = 0


def check(good, what, detail=""):
    global failures
    failures += not good
    print(f"{'ok' if good else 'FAILED'}: {what}{'' if good else ' ' + str(detail)}", flush=True)


def exit_status():
    return 1 if failures else 0
