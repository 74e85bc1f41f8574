# The same sums from any number of partitions of Spark: of an RDD by `treeAggregate`, and for each group of a table.
#
#     pip install warpfold-*.whl numpy pyspark      (docs/python.md says how to make the wheel)
#     python spark_sum.py                           (needs Java 17 or later: apt install default-jre-headless)
#
# Spark sends ExactSums by pickle.

import hashlib

import numpy as np
import warpfold as wf
from pyspark.sql import SparkSession


def main():
    source = np.random.default_rng(0)
    x = source.standard_normal((50_000, 8)) * 2.0 ** source.integers(-40, 40, (50_000, 8))
    print("whole        ", hashlib.sha256(wf.sum(x, axis=0)).hexdigest()[:16])
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    empty = wf.exact_sums(x[:0], axis=0)
    for partitions in (1, 2, 7, 20):
        blocks = spark.sparkContext.parallelize(np.array_split(x, 40), partitions)
        total = blocks.treeAggregate(
            empty,
            lambda sums, block: sums + wf.exact_sums(block, axis=0),
            lambda sums, others: sums + others,
        )
        print(f"{partitions:2} partitions", hashlib.sha256(total.values()).hexdigest()[:16])
    # A sum for each group: rows are pairs of a group and a block.
    for partitions in (1, 5):
        rows = [(number % 3, block) for number, block in enumerate(np.array_split(x, 40))]
        groups = spark.sparkContext.parallelize(rows, partitions).aggregateByKey(
            empty, lambda sums, block: sums + wf.exact_sums(block, axis=0), lambda sums, others: sums + others
        )
        sums = [total.values() for _, total in sorted(groups.collect())]
        print(f"3 groups in {partitions} partitions", hashlib.sha256(np.array(sums)).hexdigest()[:16])
    spark.stop()


if __name__ == "__main__":
    main()
