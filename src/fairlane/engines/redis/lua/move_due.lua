#!lua flags=allow-oom
-- needs: record accounting moves dependents due
-- Queue due tasks, end expired ones, release dependents: the first part of a claim, without one.
-- Returns 1 if there may be more to do now, else 0; and the microseconds until the next task is due ('' if
-- there is none).
local released = 0
for _, stream in ipairs(due_streams()) do
    released = released + release_due(stream, BATCH - released)
    if released == BATCH then
        break
    end
end
write()
local expired = expire(BATCH)
local more_to_resolve = resolve_left_over()
release_dependents()
update_streams()
post()
if released + freed > 0 then
    wake()
end
local next_in = next_due_in()
local more = released == BATCH or expired == BATCH or more_to_resolve
return {more and 1 or 0, next_in and whole(next_in) or ''}
