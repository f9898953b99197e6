"""An environment that has a PyTorch and evenkeel's wheel, and nothing else of this machine.

Promises   commands get none of this machine's settings for Python or for launchers; every one has a
           limit against hanging, and its output is in the message if it fails.
Does not   copy PyTorch: links lead to it, as if it had been installed there.
"""
import glob
import os
import subprocess

LIMIT_S = 300


def variables(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PYTHON", "PET_", "TORCH", "KEEL"))}
    return clean | more


def run(command, code=0, limit_s=LIMIT_S, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False,
                          env=variables(**more))
    if done.returncode != code:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr[-5000:]}")
    return done


class CleanEnvironment:
    """`torch`: the folder of a PyTorch for this Python; what it needs is beside it, or else in one
    of `folders`."""

    def __init__(self, folder, python, torch, folders=()):
        run([python, "-m", "venv", folder])
        self.bin = f"{folder}/bin"
        self.packages = run([f"{self.bin}/python", "-c",
                             "import site; print(site.getsitepackages()[0])"]).stdout.strip()
        os.symlink(torch, f"{self.packages}/torch")
        folders = [os.path.dirname(torch), *folders]
        with open(f"{self.packages}/of_torch.pth", "w", encoding="utf-8") as file:
            file.write("\n".join(folders) + "\n")
        # PyTorch looks for NVIDIA's libraries beside itself first, which is here.
        os.mkdir(f"{self.packages}/nvidia")
        for one in reversed(folders):
            for library in glob.glob(f"{one}/nvidia/*/"):
                link = f"{self.packages}/nvidia/{os.path.basename(library[:-1])}"
                if os.path.lexists(link):
                    os.remove(link)
                os.symlink(library[:-1], link)

    def install(self, wheel):
        run([f"{self.bin}/python", "-m", "pip", "install", "--no-deps", "--no-index", wheel])

    def python(self, *words, **more):
        return run([f"{self.bin}/python", *words], **more)
