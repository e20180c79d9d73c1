"""Command line of the book: ``python -m nwmha list | rerun | sweep | summary | new-chapter``."""

import argparse
import os
import sys
from pathlib import Path

from nwmha import reruns

STATUS = "Exit status: 0 only if all claims held, 1 if one failed or a run stopped, 2 if the request itself is wrong "
STATUS += "(nothing runs then)."


def build_parser():
    parser = argparse.ArgumentParser(prog="python -m nwmha", description="Rerun the chapters of the book.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="chapters and their parameters, with types, defaults and meaning")
    rerun = commands.add_parser(
        "rerun", help="run one chapter with other parameters",
        description=f"Run one chapter with other parameters and test all its claims again. {STATUS}",
        epilog="Example: python -m nwmha rerun 3 -p n=128 -p seed=7",
    )  # fmt: skip
    rerun.add_argument("chapter", type=int, help="chapter number, e.g. 3")
    rerun.add_argument(
        "-p", dest="assignments", metavar="NAME=VALUE", action="append", default=[],
        help="set a parameter; may be repeated. 'list' shows the names.",
    )  # fmt: skip
    rerun.add_argument(
        "--folder", type=Path, default=Path("reruns"), help="for the executed notebook (default: reruns)"
    )
    _add_sweep(commands)
    summary = commands.add_parser(
        "summary", help="table, figures and summary of the finished runs in a folder",
        description=f"Write the table and the figures of the finished runs in a folder, and say what held. {STATUS}",
    )  # fmt: skip
    summary.add_argument("folder", type=Path, help="the folder of a sweep")
    summary.add_argument("--csv", action="store_true", help="write table.csv beside table.parquet")
    new = commands.add_parser("new-chapter", help="start a chapter for a theorem of your own from the template")
    new.add_argument("number", type=int, help="its number, e.g. 10; theorems are numbered 10.1, 10.2, ...")
    new.add_argument("title", help="its title, e.g. 'Sparse heads'")
    return parser


def _add_sweep(commands):
    sweep = commands.add_parser(
        "sweep", help="run chapters over a grid of parameters and seeds, in parallel",
        description="Run chapters over a grid: every combination of the values given with -p, and of the seeds. "
        "A sweep that was interrupted or killed continues when the same command is given again; nothing that is "
        "finished runs twice. Values that a chapter itself refuses are reported and the sweep goes on. "
        "Unless -p false_alarm=... says otherwise, a chapter raises a false alarm with probability 1e-6 at most. "
        + STATUS,
        epilog="Example: python -m nwmha sweep 3 -p n=64,128,256 -p H=2,4,8 --seeds 25 --workers 4",
    )  # fmt: skip
    sweep.add_argument("chapters", type=int, nargs="+", metavar="CHAPTER", help="one or more chapter numbers")
    sweep.add_argument(
        "-p", dest="assignments", metavar="NAME=VALUE,VALUE,...", action="append", default=[],
        help="the values of one parameter; may be repeated. Every chapter named must know it.",
    )  # fmt: skip
    sweep.add_argument("--seeds", type=int, default=0, metavar="N", help="run every point with the seeds 1 to N")
    sweep.add_argument(
        "--workers", type=int, default=os.cpu_count(), metavar="N", help="processes (default: all cores)"
    )
    sweep.add_argument(
        "--folder", type=Path, default=Path("reruns"), help="where all results are kept (default: reruns)"
    )
    sweep.add_argument("--csv", action="store_true", help="write table.csv beside table.parquet")
    sweep.add_argument("--fresh", action="store_true", help="a fresh kernel for every run: slower, nothing shared")
    sweep.add_argument("--scheduler", metavar="ADDRESS", help="a dask.distributed cluster, e.g. tcp://host:8786; its "
                       "workers need this package and this book (pip install -e '.[cluster]')")  # fmt: skip


def list_chapters():
    for number, path in reruns.chapters().items():
        print(f"{number}  {path.stem[3:].replace('_', ' ')}")
        for parameter in reruns.parameters(path).values():
            default = f"{parameter.name}: {parameter.type.__name__} = {parameter.default!r}"
            print(f"     {default:<34}{parameter.help}")
    return 0


def rerun(options):
    known = reruns.parameters(reruns.chapter_path(options.chapter))
    values = reruns.parse(options.assignments, known)
    result = reruns.rerun(options.chapter, values, folder=options.folder)
    print(reruns.summary(result))
    return 0 if result.held else 1


def sweep(options):
    from nwmha import progress, sweeps

    if options.workers < 1:
        raise ValueError(f"--workers must be at least 1, got {options.workers}")
    runs = sweeps.plan(options.chapters, options.assignments, seeds=options.seeds, book=reruns.BOOK)
    with progress.executor(options.workers, options.scheduler) as pool, progress.Progress(runs, options.folder) as bar:
        results = sweeps.sweep(
            runs, options.folder, executor=pool, report=bar.report, fresh=options.fresh, book=reruns.BOOK
        )
    conclude(results, options)
    if bar.broken:
        print(f"{bar.broken} runs could not be executed; the same command tries them again", file=sys.stderr)
    return 0 if len(results) == len(runs) and all(r["status"] == "held" for r in results) else 1


def summary(options):
    from nwmha import sweeps

    results = sweeps.load(options.folder)
    conclude(results, options)
    return 0 if all(r["status"] == "held" for r in results) else 1


def conclude(results, options):
    from nwmha import tables

    if not results:
        raise ValueError(f"no run in {options.folder} is finished")
    written = [*tables.write(results, options.folder, csv=options.csv), *tables.draw(results, options.folder)]
    print(tables.summary(results))
    print("written: " + ", ".join(map(str, written)))


def new_chapter(options):
    from nwmha import template

    print(template.write(options.number, options.title))
    return 0


def main(argv=None):
    options = build_parser().parse_args(argv)
    commands = {"rerun": rerun, "sweep": sweep, "summary": summary, "new-chapter": new_chapter}
    try:
        return list_chapters() if options.command == "list" else commands[options.command](options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has seen enough, as in "list | head"
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("interrupted: what is finished is kept, and the same command continues", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
