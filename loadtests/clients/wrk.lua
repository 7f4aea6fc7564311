-- The request and the report of every run.
-- Arguments: pipeline depth, method, target and, for a POST, the file that holds the body.

function init(args)
   local depth = tonumber(args[1])
   wrk.method = args[2]
   wrk.path = args[3]
   if args[4] then
      local file = assert(io.open(args[4], "rb"))
      wrk.body = file:read("*a")
      file:close()
   end
   if depth > 1 then
      local batch = string.rep(wrk.format(), depth)
      -- A global of this name makes wrk ask for every batch; without it the request is fixed and free.
      request = function() return batch end
   end
end

function done(summary, latency, requests)
   local errors = summary.errors
   io.write(string.format(
      'loadtests {"requests": %d, "microseconds": %d, "bytes": %d, "mean_us": %d, "p50_us": %d, "p99_us": %d, "max_us": %d, '
      .. '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\n',
      summary.requests, summary.duration, summary.bytes,
      latency.mean, latency:percentile(50), latency:percentile(99), latency.max,
      errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
