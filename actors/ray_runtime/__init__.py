"""The roles as Ray actors; the only folder that knows Ray."""

import gc

#: How often Python looks for garbage by itself.
OFTEN = gc.get_threshold()
# Ray starts a process before it knows for which role: this import is the first of ours there. Nearly all that it leads
# to stays, and to look for garbage in it again and again takes a tenth of the time. `RoleProcess.settle` ends this.
gc.set_threshold(200_000, 20, 100)
