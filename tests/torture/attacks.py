"""All attacks, in the order of the page."""

from typing import Final

from torture.arguments import wrong_argument
from torture.commands import wrong_command
from torture.processes import early_reader, full_disk, signalled
from torture.record import Attack

ATTACKS: Final = (
    Attack(
        "wrong arguments", "one or two arguments of a public function replaced by anything", wrong_argument
    ),
    Attack(
        "wrong command lines", "words of a command replaced, dropped or added, with bad files", wrong_command
    ),
    Attack("readers that leave", "a pipe closed after some bytes, or streams that are closed", early_reader),
    Attack(
        "signals", "SIGTERM, SIGHUP, SIGINT or SIGKILL at a random moment of calibrate and decide", signalled
    ),
    Attack("full disks", "a write that the system cuts short after a random number of bytes", full_disk),
)
