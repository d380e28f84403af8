"""What the tests that compare with the reference library share: its interpreter, and logits of both sides.

Import it first: it starts the script again with the Python of the reference packages (make reference), and ends it with
status 77 where they are not installed.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

_cache = pathlib.Path(os.environ.get("PENSTOCK_CACHE", pathlib.Path.home() / ".cache/penstock"))
_python = os.environ.get("PENSTOCK_REFERENCE_PYTHON") or str(_cache / "venv-reference/bin/python3")
if os.environ.get("PENSTOCK_IS_REFERENCE") != "1":
    if not os.path.exists(_python):
        print("skipped: the reference packages are not installed (make reference)")
        sys.exit(77)
    os.environ.update(PENSTOCK_IS_REFERENCE="1", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", OMP_NUM_THREADS="1",
                      TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1")
    os.execv(_python, [_python, *sys.argv])

try:
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error} (make reference)")
    sys.exit(77)

transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)


def folder_of(package):
    """Where an installed package keeps its files; it is not imported. Status 77 where it is not installed."""
    found = importlib.util.find_spec(package)
    if found is None:
        print(f"skipped: the package {package} is not installed (make reference)")
        sys.exit(77)
    return pathlib.Path(found.submodule_search_locations[0])


class Program:
    """The program under test, and the one that writes logits (logits_probe.cc), in a folder of their own."""

    def __init__(self, penstock, probe, work):
        self.penstock, self.probe, self.work = os.path.abspath(penstock), os.path.abspath(probe), work
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(work)}

    def __call__(self, *arguments, code=0):
        done = subprocess.run([self.penstock, *map(str, arguments)], capture_output=True, text=True,
                              env=self.environment, cwd=self.work)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def logits(self, checkpoint, prompts, dtype=torch.float32):
        """Of every position of every prompt, computed in `dtype`."""
        lines = "\n".join(" ".join(map(str, p)) for p in prompts)
        wide = ["fp64"] if dtype == torch.float64 else []
        done = subprocess.run([self.probe, str(checkpoint), *wide], input=lines.encode(), capture_output=True,
                              env=self.environment)
        assert done.returncode == 0, done.stderr.decode()
        rows = torch.frombuffer(bytearray(done.stdout), dtype=dtype).view(sum(map(len, prompts)), -1)
        return rows.split([len(p) for p in prompts])

    def difference(self, model, checkpoint, prompts):
        """Largest of the logits of all prompts between the library's model and our checkpoint."""
        return largest(differences(self.logits(checkpoint, prompts, model.dtype), logits_of(model, prompts)))


def logits_of(model, prompts):
    with torch.no_grad():
        return [model(torch.tensor([p])).logits[0] for p in prompts]


def differences(ours, theirs):
    """Largest difference at every position."""
    return torch.cat([(a.double() - b.double()).abs().amax(1) for a, b in zip(ours, theirs, strict=True)])


def largest(values):
    return float(values.max())
