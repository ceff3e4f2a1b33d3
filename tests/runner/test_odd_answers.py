"""What a worker writes that is no answer: the launch fails with a reason."""

import os
import select
import sys

import pytest

from kit.runner.target import Command
from kit.runner.worker_processes import Process

ANSWERS = {
    "deeply nested": "'[' * 200_000",
    "a deeply nested field": '\'{"type":"Done","more":\' + \'[\' * 200_000',
    "no JSON": "'hello'",
    "no UTF-8": '\'{"type":"Done","address":"\\udcff"}\'',
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_none_is_a_failure_of_the_protocol(name):
    program = f"import sys; sys.stdout.buffer.write(({ANSWERS[name]} + '\\n').encode(errors='surrogateescape'))"
    process = Process(Command([sys.executable, "-c", program], dict(os.environ)))
    answer = None
    while answer is None:
        select.select([process], [], [], 20)
        answer = process.answer()
    process.end()
    process.wait()
    assert answer.reason.code == "protocol"
