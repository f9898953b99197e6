"""What a comparison ran on, from /proc and the tools that are there. Linux only."""
import os
import platform
import subprocess


def first_after(path, name):
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(name):
                    return line.split(":" if ":" in line else "=", 1)[1].strip().strip('"')
    except OSError:
        pass
    return "unknown"


def disk_of(folder):
    """File system and device under `folder`."""
    done = subprocess.run(["df", "--output=fstype,source", folder], capture_output=True, text=True,
                          check=False)
    words = done.stdout.split()[-2:]
    return f"{words[0]} on {words[1]}" if done.returncode == 0 and len(words) == 2 else "a disk"


def describe(folder):
    return {"cores": len(os.sched_getaffinity(0)),
            "cpu": first_after("/proc/cpuinfo", "model name"),
            "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
            "kernel": platform.release(), "system": first_after("/etc/os-release", "PRETTY_NAME"),
            "disk": disk_of(folder)}


def version_of(program):
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return (said.stdout.split() or ["unknown"])[-1]


def our_version(root, program):
    """The program's version, and the commit where this is a clone."""
    words = version_of(program)
    commit = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False)
    return f"{words} ({commit.stdout.strip()})" if commit.returncode == 0 else words
