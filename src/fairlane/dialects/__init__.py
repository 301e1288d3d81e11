"""Other programming interfaces to Fairlane, for programs written against two earlier documents.

`tq` speaks the style of document 001, a language-neutral specification of a task queue on SQLite:
`tq("crawl").add({…})`. `tasklib` speaks the style of document 004, a library of decorated functions
on PostgreSQL: `@task` and `submit_task(…)`. Both only translate what they are given.
"""
