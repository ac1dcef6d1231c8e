"""The times of a lease, in the one order that keeps it: lease > function timeout > HTTP deadline + database time."""

from dataclasses import dataclass

from scheduler.errors import MisconfiguredError

# What an invocation needs besides its POSTs: the claim before them, and after the last one the record, a second try of it
# and the answer.
CLAIM_SECONDS = 1.0
MARGIN_SECONDS = 6.0
DATABASE_SECONDS = CLAIM_SECONDS + MARGIN_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseTimes:
    """Seconds: the queue's visibility timeout, the delivery function's timeout, the deadline of one POST.

    A function that outlived its lease would go on posting while another worker starts; a deadline that outlived its
    function would leave attempts without a recorded outcome. MisconfiguredError names the pair that is out of order.
    """

    lease: int
    function_timeout: int
    deadline: int

    def __post_init__(self) -> None:
        if self.lease <= self.function_timeout:
            raise MisconfiguredError(
                f"LEASE_SECONDS ({self.lease}) must be more than DELIVERY_TIMEOUT_SECONDS ({self.function_timeout})"
            )
        if self.function_timeout <= self.deadline + DATABASE_SECONDS:
            raise MisconfiguredError(
                f"DELIVERY_TIMEOUT_SECONDS ({self.function_timeout}) must be more than HTTP_DEADLINE_SECONDS "
                f"({self.deadline}) and {DATABASE_SECONDS:.0f} seconds for the database"
            )
