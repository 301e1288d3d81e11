#!lua flags=no-writes
return {now_text, call('HGETALL', TOKENS)}
