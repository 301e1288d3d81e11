-- How long a worker that reports starts may hold a task unstarted: see NewWorker in core/model.py.
ALTER TABLE workers ADD COLUMN start_within INTEGER;  -- microseconds
