"""A planner's tick as a process of its own, killed with SIGKILL around its first send: run by test_dispatch.py."""

import os
import signal
import sys
from datetime import datetime, timedelta

import boto3
from scheduler.aws.queue import Queue
from scheduler.dispatch import Dispatcher, sweep
from scheduler.planning import plan
from scheduler.store.connection import Database, Login, Transaction


class Killed:
    """An SQS client that takes its process with it before or after its first send."""

    def __init__(self, client: object, moment: str) -> None:
        self._client = client
        self._moment = moment

    def send_message_batch(self, **words: object) -> object:
        if self._moment == "before-send":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = self._client.send_message_batch(**words)
        if self._moment == "after-send":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def main(host: str, port: str, name: str, user: str, password: str, url: str, now: str, moment: str) -> None:
    login = Login(host=host, port=int(port), database=name, user=user, password=password, tls=None)
    database = Database(lambda: login)
    queue = Queue(Killed(boto3.client("sqs"), moment), url)

    def clock(_: Transaction) -> datetime:
        return datetime.fromisoformat(now)

    plan(database, clock, retention=timedelta(days=30), more_time=lambda: True)
    Dispatcher(database=database, queue=queue, clock=clock).dispatch(more_time=lambda: True)
    sweep(database, queue, clock, more_time=lambda: True)
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
