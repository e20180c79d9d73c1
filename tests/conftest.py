"""Shared fixtures: seeded generators and a book of one toy chapter."""

import nbformat
import numpy as np
import pytest

PARAMETERS = "n: int = 4  # sample size\nsigma: float = 1.0  # noise\nname: str = 'a'\nfast: bool = True\nseed: int = 1"
WORK = """from nwmha import Ledger
ledger = Ledger(7, theorem="7.1", tests=1)
ledger.exact("A", "n is four", n, 4, control=5)
if sigma > 2:
    raise ValueError("sigma must be at most 2")
ledger.close_chapter()"""


@pytest.fixture
def rng():
    return np.random.default_rng(20260501)


@pytest.fixture(scope="session")
def write_book():
    """Function that writes a book of one toy chapter, number 7: its claim holds for n = 4, sigma above 2 is refused."""

    def write(folder):
        cells = [
            nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}), nbformat.v4.new_code_cell(WORK)
        ]  # fmt: skip
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "07_toy.ipynb")
        return folder

    return write


@pytest.fixture
def book(tmp_path, write_book):
    return write_book(tmp_path)
