"""The roles as Ray actors; the only folder that knows Ray."""

import gc

#: How often Python looks for garbage by itself.
OFTEN = gc.get_threshold()
# Nearly all that a process of a role imports stays: to look for garbage in it again and again takes a tenth of the
# time that imports take. `RoleProcess.settle` ends this.
gc.set_threshold(200_000, 20, 100)
