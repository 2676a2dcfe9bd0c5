"""The page of Spark: its engine reads Spark's tables with the same bits as memory; a table as it is is refused."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="make test-peers brings it")

import fastdp

PAGE = Path(__file__).parents[2] / "docs/connect/spark.md"
pytestmark = [
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets that Spark leaves
]


@pytest.fixture(scope="module")
def page():
    """What the page defines; its last block checks the engine, and ends the session."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    namespace = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for block in blocks[:-1]:
        exec(compile(block, str(PAGE), "exec"), namespace)
    yield namespace
    exec(compile(blocks[-1], str(PAGE), "exec"), namespace)


def test_a_table_as_it_is_is_not_gathered(page):
    frame = page["spark"].createDataFrame([(1.0, 2)], ["x", "y"])
    for call in (
        lambda: fastdp.median(frame, epsilon=1.0),
        lambda: fastdp.median(frame.x, epsilon=1.0),
        lambda: fastdp.vector_sum(frame, clip=1.0, epsilon=1.0),
        lambda: fastdp.statistics.mean(frame, bounds=(0, 1), epsilon=1.0),
    ):
        with pytest.raises(ValueError, match=r"must be given as a fastdp\.records\.Engine.*docs/connect/spark\.md"):
            call()


def test_files_have_the_same_bits(page, tmp_path):
    people = page["people"][["age", "hours"]]
    page["spark"].createDataFrame(page["pa"].Table.from_pandas(people)).repartition(3).write.parquet(f"{tmp_path}/x")
    far = page["spark"].read.parquet(f"{tmp_path}/x")
    rows, here = page["SparkRows"](far), far.toPandas()
    found = [
        fastdp.vector_mean(some, clip=130.0, epsilon=1.0, rng=fastdp.Randomness(seed=1)).value for some in (rows, here)
    ]
    assert np.array_equal(*found)


def test_a_record_outside_the_domain_is_an_error_here(page):
    with fastdp.Budget(epsilon=1.0) as budget, pytest.raises(fastdp.DomainError, match="age"):
        fastdp.release_marginals(page["far"], fastdp.Domain(age=50), [["age"]], epsilon=1.0, delta=0.0)
    assert not budget.releases
