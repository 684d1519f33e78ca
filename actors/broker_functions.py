"""The functions that run inside the broker, each one atomic, as one Lua library.

The library's name and its functions' names carry a digest of the code, so two versions of the program can use one
broker at the same time, and loading again replaces a library by its equal.
It uses only what Redis 7 and Valkey 8 share.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

_CODE: Final = """
local function parts(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

local function before(a, b)
  local am, as = parts(a)
  local bm, bs = parts(b)
  return am < bm or (am == bm and as < bs)
end

-- keys: stream; args: covered id. Keeps, for every group, its oldest unacknowledged entry, or else the last one it was
-- handed: the anchor by which a reader knows that nothing after it is missing.
local function trim(keys, args)
  if redis.call('EXISTS', keys[1]) == 0 then return 0 end
  local floor = args[1]
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', keys[1])) do
    local group = {}
    for i = 1, #row, 2 do group[row[i]] = row[i + 1] end
    local low = group['last-delivered-id']
    if group['pending'] > 0 then low = redis.call('XPENDING', keys[1], group['name'])[2] end
    if before(low, floor) then floor = low end
  end
  return redis.call('XTRIM', keys[1], 'MINID', floor)
end

-- keys: stream; args: group, covered id. Nothing up to the id is pending any more, and the group reads on behind it.
local function cover(keys, args)
  if redis.call('EXISTS', keys[1]) == 0 then return 0 end
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', keys[1])) do
    local group = {}
    for i = 1, #row, 2 do group[row[i]] = row[i + 1] end
    if group['name'] == args[1] then
      local left = redis.call('XPENDING', keys[1], args[1], '-', args[2], 1000)
      while #left > 0 do
        local ids = {}
        for i, one in ipairs(left) do ids[i] = one[1] end
        redis.call('XACK', keys[1], args[1], unpack(ids))
        left = redis.call('XPENDING', keys[1], args[1], '-', args[2], 1000)
      end
      if before(group['last-delivered-id'], args[2]) then
        redis.call('XGROUP', 'SETID', keys[1], args[1], args[2])
      end
      return 1
    end
  end
  return 0
end

-- keys: dead stream, seen; args: cap, then per letter: identity, number of fields, name, value, ...
-- A letter that was seen is not written again; what was seen longest ago is forgotten first.
local function bury(keys, args)
  local cap, written, i = tonumber(args[1]), 0, 2
  while i <= #args do
    local identity, n = args[i], tonumber(args[i + 1])
    local pairs_ = {}
    for j = 1, 2 * n do pairs_[j] = args[i + 1 + j] end
    if redis.call('ZSCORE', keys[2], identity) == false then
      local id = redis.call('XADD', keys[1], 'MAXLEN', '~', cap, '*', unpack(pairs_))
      redis.call('ZADD', keys[2], (parts(id)), identity)
      written = written + 1
    end
    i = i + 2 + 2 * n
  end
  redis.call('ZREMRANGEBYRANK', keys[2], 0, -cap - 1)
  return written
end

-- keys: lease, epoch; args: owner, ttl_ms -> {'HELD', epoch} | {'BUSY', epoch, owner, ttl_ms}
local function acquire(keys, args)
  local held = redis.call('HMGET', keys[1], 'epoch', 'owner')
  if held[1] and held[2] ~= args[1] then
    return {'BUSY', held[1], held[2], tostring(redis.call('PTTL', keys[1]))}
  end
  local epoch = tostring(redis.call('INCR', keys[2]))
  redis.call('HSET', keys[1], 'epoch', epoch, 'owner', args[1])
  redis.call('PEXPIRE', keys[1], args[2])
  return {'HELD', epoch}
end

-- keys: lease; args: epoch, ttl_ms (0 gives the lease back) -> 1 when the lease was this epoch's
local function renew(keys, args)
  if redis.call('HGET', keys[1], 'epoch') ~= args[1] then return 0 end
  if args[2] == '0' then redis.call('DEL', keys[1]) else redis.call('PEXPIRE', keys[1], args[2]) end
  return 1
end

-- keys: lease, epoch, verdicts, accepted, refused, decisions, revision
-- args: epoch, record key, verdict, cap of refused, then the fields of the decision (none: a refusal is recorded)
-- -> {'RECORDED' | 'DUPLICATE', revision, entry id, verdict} | {'FENCED', current epoch}
local function commit(keys, args)
  local first = redis.call('HGET', keys[3], args[2])
  if first then
    local revision, entry, verdict = string.match(first, '^(%d+) (%S+) (.*)$')
    return {'DUPLICATE', revision, entry, verdict}
  end
  if redis.call('HGET', keys[1], 'epoch') ~= args[1] then
    return {'FENCED', redis.call('GET', keys[2]) or '0'}
  end
  local revision = tostring(redis.call('INCR', keys[7]))
  local entry = '-'
  if #args > 4 then
    local fields = {'revision', revision}
    for i = 5, #args do fields[i - 2] = args[i] end
    entry = redis.call('XADD', keys[6], '*', unpack(fields))
    redis.call('ZADD', keys[4], revision, args[2])
  else
    redis.call('ZADD', keys[5], revision, args[2])
    local over = redis.call('ZCARD', keys[5]) - tonumber(args[4])
    if over > 0 then
      local out = redis.call('ZPOPMIN', keys[5], over)
      for i = 1, #out, 2 do redis.call('HDEL', keys[3], out[i]) end
    end
  end
  redis.call('HSET', keys[3], args[2], revision .. ' ' .. entry .. ' ' .. args[3])
  return {'RECORDED', revision, entry, args[3]}
end

-- keys: lease, verdicts, accepted, decisions, revision; args: epoch, keep -> number forgotten, -1 when fenced
-- Forgets verdicts whose decision was trimmed, but never one of the newest `keep`.
local function forget(keys, args)
  if redis.call('HGET', keys[1], 'epoch') ~= args[1] then return -1 end
  local newest = tonumber(redis.call('GET', keys[5]) or '0')
  local floor = newest - tonumber(args[2]) + 1
  local first = redis.call('XRANGE', keys[4], '-', '+', 'COUNT', 1)[1]
  if first then
    for i = 1, #first[2], 2 do
      if first[2][i] == 'revision' then floor = math.min(floor, tonumber(first[2][i + 1])) end
    end
  end
  local out = redis.call('ZRANGEBYSCORE', keys[3], '-inf', '(' .. floor)
  for _, key in ipairs(out) do redis.call('HDEL', keys[2], key) end
  redis.call('ZREMRANGEBYSCORE', keys[3], '-inf', '(' .. floor)
  return #out
end
"""

_DIGEST: Final = blake2b(_CODE.encode(), digest_size=5).hexdigest()
_NAMES: Final = ("trim", "cover", "bury", "acquire", "renew", "commit", "forget")


def function_name(name: str) -> str:
    """The broker's name for one of our functions."""
    if name not in _NAMES:
        raise ValueError(f"no broker function {name!r}, expected one of {', '.join(_NAMES)}")
    return f"clearway_{_DIGEST}_{name}"


LIBRARY: Final = "\n".join(
    [f"#!lua name=clearway_{_DIGEST}", _CODE]
    + [f"redis.register_function('{function_name(name)}', {name})" for name in _NAMES]
)
"""What `FUNCTION LOAD REPLACE` is given."""
