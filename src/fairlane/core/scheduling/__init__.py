"""Schedules in a store: the operations, composed from documents and submission.

A schedule is a document whose time (`at`) is when somebody has to look at it. So the schedules that
are due are the first of their kind, whatever else there is. Firing is one step of the engine
(`submit_along`): the document moves on to its next tick and the tasks are stored, or neither
happens. The document names its last task, and nobody can move it on from the same tick again.
"""

from fairlane.core.scheduling.besides import backfill_schedule as backfill_schedule
from fairlane.core.scheduling.besides import backfilled as backfilled
from fairlane.core.scheduling.besides import run_schedule as run_schedule
from fairlane.core.scheduling.changing import drop_schedule as drop_schedule
from fairlane.core.scheduling.changing import pause_schedule as pause_schedule
from fairlane.core.scheduling.changing import resume_schedule as resume_schedule
from fairlane.core.scheduling.declaring import put_schedules as put_schedules
from fairlane.core.scheduling.due import Fired as Fired
from fairlane.core.scheduling.due import due_schedules as due_schedules
from fairlane.core.scheduling.due import fire_due as fire_due
from fairlane.core.scheduling.reading import SchedulePage as SchedulePage
from fairlane.core.scheduling.reading import schedule_page as schedule_page
from fairlane.core.scheduling.reading import schedules as schedules
from fairlane.core.scheduling.reading import tick_counts as tick_counts
from fairlane.core.scheduling.stored import KIND as KIND
from fairlane.core.scheduling.stored import checked_batch as checked_batch
from fairlane.core.scheduling.stored import unknown as unknown
from fairlane.core.scheduling.sweeping import sweep_schedules as sweep_schedules
