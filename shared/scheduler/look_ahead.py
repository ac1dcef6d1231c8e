"""How far ahead runs are planned and sent."""

from datetime import timedelta

# A timer interval, its precision on AWS and a tick's own time: what is due before the next tick has run is planned now.
LOOK_AHEAD = timedelta(seconds=120)
