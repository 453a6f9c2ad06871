# SPDX-License-Identifier: Apache-2.0
"""What is installed serves programs of others, wherever the installation is moved.

usage: package.py KIND BUILD PREFIX VERSION SANITIZER SOURCE...
KIND is a function below; PREFIX, VERSION and SANITIZER are those of BUILD, SOURCEs tests in C.

In a folder of its own, outside the tree, the build is installed and used, moved, and used again.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KIND, BUILD, PREFIX, VERSION, SANITIZER, *SOURCES = sys.argv[1:]


def run(*command, **options):
    """The standard output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, **options)
    if done.returncode:
        words = " ".join(map(str, command))
        sys.exit(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def skip(why):
    print(why)
    sys.exit(77)


class Installation:
    def __init__(self, root):
        self.root = root
        self.libraries = self.one("**/libkhoro.so").parent
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(self.libraries),
                                PKG_CONFIG_PATH=str(self.one("**/khoro.pc").parent))

    def one(self, pattern):
        found = list(self.root.glob(pattern))
        assert len(found) == 1, f"{pattern} in {self.root}: {found}"
        return found[0]

    def flags(self, *arguments):
        return run("pkg-config", *arguments, "khoro", env=self.environment).split()

    def check(self, *programs):
        """They run and say what they should; those that are static without any library of ours."""
        for program in programs:
            static = program.name.endswith("static")
            said = run(program, env=dict(os.environ) if static else self.environment)
            names = program.name.startswith("names")
            assert said == ("success\n" if names else f"khoro {VERSION}: 3 3\n"), said
            assert static != ("libkhoro.so.1" in run("readelf", "-d", program)), program


def twice(use):
    """Calls use(installation, folder) for an installation and, after it was moved, once more."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder / "installed")
        root = folder / "installed" / pathlib.Path(PREFIX).relative_to("/")
        for place in "here", "there":
            (folder / place).mkdir()
            root = root.rename(folder / place / "prefix")
            use(Installation(root), folder / place)


def foreign(project, folder):
    """A project of somebody else in that folder."""
    shutil.copytree(HERE / "foreign" / project, folder / project)
    for source in (HERE / "foreign").glob("*.c*"):
        shutil.copy(source, folder / project)
    return folder / project


def check_c_api(installed, folder):
    """The tests of the C face that were named pass with headers and library as installed."""
    flags = installed.flags("--cflags", "--libs")

    def one(source):
        program = folder / pathlib.Path(source).stem
        run("cc", "-std=c11", "-O1", "-pthread", source, "-o", program, *flags)
        run(program, env=installed.environment, timeout=120)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, SOURCES))


def cmake():
    if not shutil.which("cmake"):
        skip("cmake is not installed")

    def use(installed, folder):
        source, build = foreign("cmake", folder), folder / "build"
        run("cmake", "-G", "Ninja", "-S", source, "-B", build,
            f"-DCMAKE_PREFIX_PATH={installed.root}")
        run("cmake", "--build", build)
        installed.check(*(build / name for name in ("sum", "sum_static", "names", "names_static")))

    twice(use)


def meson():
    def use(installed, folder):
        source, build = foreign("meson", folder), folder / "build"
        run("meson", "setup", build, source, env=installed.environment)
        run("meson", "compile", "-C", build)
        installed.check(build / "sum", build / "names")

    twice(use)


def compiler():
    """What pkg-config says is enough: for the library, the archive, and a program without any."""
    def use(installed, folder):
        sources = foreign("meson", folder)
        static = installed.flags("--static", "--cflags", "--libs")
        archive = ["-l:libkhoro.a" if flag == "-lkhoro" else flag for flag in static]
        for kind, flags in (("", installed.flags("--cflags", "--libs")), ("_static", archive),
                            ("_all_static", ["-static", *static])):
            for tool, source in ("cc", "sum.c"), ("c++", "names.cpp"):
                program = folder / (pathlib.Path(source).stem + kind)
                run(tool, sources / source, "-o", program, *flags)
                installed.check(program)

    twice(use)


def programs():
    """The tool and the benchmarks run where they lie, and each has a page that man finds."""
    def use(installed, folder):
        binaries = installed.root / "bin"
        said = run(binaries / "khoro", "--version")
        assert said == f"khoro {VERSION}\n", said
        for program in binaries.iterdir():
            pages = installed.one(f"**/man1/{program.name}.1").parent.parent
            if shutil.which("man"):
                page = run("man", program.name, env=dict(os.environ, MANPATH=str(pages)))
                assert "SYNOPSIS" in page, page
            if program.name != "khoro":
                table = run(binaries / "khoro", "run", "-n", 2, "--", program.name, "-b", 8, "-e",
                            8)
                assert "# Out of bounds values : 0 OK" in table, table

    twice(use)


def c_api():
    twice(check_c_api)


def subproject():
    """As a subproject Khoro is the library alone, shared or static as the parent likes it, here
    built as where there is no toolkit for GPUs."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, build = foreign("meson", folder), folder / "build"
        (source / "subprojects").mkdir()
        (source / "subprojects/khoro").symlink_to(ROOT)
        run("meson", "setup", build, source, "-Dbuildtype=plain", f"-Dprefix={folder}/installed",
            "--force-fallback-for=khoro", "-Dkhoro:cuda=disabled")
        targets = json.loads(run("meson", "introspect", build, "--targets"))
        built = {pathlib.Path(target["filename"][0]).name for target in targets
                 if target["type"] == "executable" or target["installed"]}
        assert built == {"sum", "names", "libkhoro.so.1.0.0", "libkhoro.a"}, built
        assert json.loads(run("meson", "introspect", build, "--tests")) == []

        run("meson", "compile", "-C", build)
        run("meson", "install", "-C", build, "--no-rebuild")
        installed = Installation(folder / "installed")
        installed.check(build / "sum", build / "names")
        check_c_api(installed, folder)

        run("meson", "configure", build, "-Dkhoro:default_library=static")
        run("meson", "compile", "-C", build)
        for name in "sum", "names":
            (build / name).rename(build / f"{name}_static")
        installed.check(build / "sum_static", build / "names_static")


if SANITIZER != "none":
    skip(f"who uses a library that is built with --sanitize {SANITIZER} must be so, too")
globals()[KIND]()
