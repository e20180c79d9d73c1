"""Command line: ``python -m nwmha list`` and ``python -m nwmha rerun 3 -p n=128 -p seed=7``."""

import argparse
import sys
from pathlib import Path

from nwmha import reruns


def build_parser():
    parser = argparse.ArgumentParser(prog="python -m nwmha", description="Rerun the chapters of the book.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="chapters and their parameters, with types and defaults")
    rerun = commands.add_parser(
        "rerun",
        help="run one chapter with other parameters",
        description="Run one chapter with other parameters. The exit status is 0 only if all claims held, "
        "1 if one failed or the chapter stopped, 2 if the request itself is wrong (nothing runs then).",
    )
    rerun.add_argument("chapter", type=int, help="chapter number, e.g. 3")
    rerun.add_argument(
        "-p", dest="assignments", metavar="NAME=VALUE", action="append", default=[],
        help="set a parameter; may be repeated. 'list' shows the names.",
    )  # fmt: skip
    rerun.add_argument(
        "--folder", type=Path, default=Path("reruns"),
        help="where the executed notebook is kept (default: reruns)",
    )  # fmt: skip
    return parser


def list_chapters():
    for number, path in reruns.chapters().items():
        print(f"{number}  {path.stem[3:].replace('_', ' ')}")
        for parameter in reruns.parameters(path).values():
            default = f"{parameter.name}: {parameter.type.__name__} = {parameter.default!r}"
            print(f"     {default:<34}{parameter.help}")


def main(argv=None):
    options = build_parser().parse_args(argv)
    if options.command == "list":
        list_chapters()
        return 0
    try:
        known = reruns.parameters(reruns.chapter_path(options.chapter))
        values = reruns.parse(options.assignments, known)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    result = reruns.rerun(options.chapter, values, folder=options.folder)
    print(reruns.summary(result))
    return 0 if result.held else 1


if __name__ == "__main__":
    sys.exit(main())
