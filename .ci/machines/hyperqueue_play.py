"""Starts HyperQueue with two workers, and a driver in each: hyperqueue_play.py FOLDER SCRIPT REMOTE RUN"""

import pathlib
import sys

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

folder, script, remote, run = pathlib.Path(sys.argv[1]), *sys.argv[2:]
folder.mkdir()
with LocalCluster(str(folder / "server")) as cluster:
    for _ in range(2):
        cluster.start_worker(WorkerConfig(cores=1))
    client, job = cluster.client(), Job(folder)
    for number in range(3):
        job.program([script, remote, run], stdout=folder / f"{number}.log", stderr=folder / f"{number}.log")
    client.wait_for_jobs([client.submit(job)])
