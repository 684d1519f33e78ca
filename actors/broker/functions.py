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

local function time_ms()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
end

-- The groups of a stream, each with the oldest entry it was not handed and its oldest pending one; nil where none is.
local function groups(key)
  local found = {}
  if redis.call('EXISTS', key) == 0 then return found end
  for n, row in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    local group = {}
    for i = 1, #row, 2 do group[row[i]] = row[i + 1] end
    local waiting = redis.call('XRANGE', key, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
    group['waiting'] = waiting and waiting[1]
    if group['pending'] > 0 then group['held'] = redis.call('XPENDING', key, group['name'])[2] end
    found[n] = group
  end
  return found
end

-- keys: stream; args: covered id, and how long entries are kept (ms; '': without limit) by the broker's clock, whose
-- times are in their ids: a group that has left an older one unacknowledged is not waited for. Keeps, for every other,
-- its oldest unacknowledged entry, or else the last one it was handed: the anchor by which a reader knows that nothing
-- after it is missing.
local function trim(keys, args)
  local floor, since = args[1], '0-0'
  if args[2] ~= '' then since = string.format('%.0f-0', math.max(0, time_ms() - tonumber(args[2]))) end
  for _, group in ipairs(groups(keys[1])) do
    local oldest = group['held'] or group['waiting']
    local low = group['held'] or group['last-delivered-id']
    if before(low, floor) and not (oldest and before(oldest, since)) then floor = low end
  end
  return redis.call('XTRIM', keys[1], 'MINID', floor)
end

-- keys: stream; args: group, covered id. Nothing up to the id is pending any more, and the group reads on behind it.
local function cover(keys, args)
  for _, group in ipairs(groups(keys[1])) do
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

-- keys: stream -> per group: name, entries not handed out, pending, age of the oldest not handed out, of the oldest
-- pending (ms by the broker's clock, whose times are in the ids; 0: none).
-- The broker does not count for a group that was made, or set, in the middle; then we do, in pieces, to a thousand.
-- Above a thousand, the length of the stream is returned.
local function lags(keys)
  local out, now = {}, time_ms()
  local function age(id) return id and math.max(0, now - (parts(id))) or 0 end
  for n, group in ipairs(groups(keys[1])) do
    local unread, at = group['waiting'] and group['lag'] or 0, group['last-delivered-id']
    if group['waiting'] and not group['lag'] then
      local piece
      repeat
        piece = redis.call('XRANGE', keys[1], '(' .. at, '+', 'COUNT', 100)
        unread = unread + #piece
        if #piece > 0 then at = piece[#piece][1] end
      until #piece < 100 or unread >= 1000
      if unread >= 1000 then unread = redis.call('XINFO', 'STREAM', keys[1])[2] end
    end
    out[n] = {group['name'], unread, group['pending'], age(group['waiting']), age(group['held'])}
  end
  return out
end

-- The answer for a caller who may not run one of some commands (each its words), or nil. What a function has written
-- when it fails stays written, so one that writes in several steps asks before the first.
local function denied(commands)
  for _, words in ipairs(commands) do
    if not redis.acl_check_cmd(unpack(words)) then
      return redis.error_reply('NOPERM it may not run ' .. table.concat(words, ' '))
    end
  end
end

-- keys: dead stream, seen; args: cap, then per letter: identity, number of fields, name, value, ...
-- A letter that was seen is not written again; what was seen longest ago is forgotten first.
local function bury(keys, args)
  local cap, written, i = tonumber(args[1]), 0, 2
  local no = denied({{'XADD', keys[1], '*', 'f', 'v'}, {'ZADD', keys[2], 1, 'm'}})
  if no then return no end
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

-- args: per command the number of its words, and these -> the numbers, from 1, of those that the caller may not run
local function lacks(keys, args)
  local out, number, i = {}, 0, 1
  while i <= #args do
    local words = {}
    for j = 1, tonumber(args[i]) do words[j] = args[i + j] end
    number = number + 1
    if not redis.acl_check_cmd(unpack(words)) then out[#out + 1] = number end
    i = i + 1 + #words
  end
  return out
end

-- Whether the lease is this owner's under this epoch.
local function holds(lease, owner, epoch)
  local held = redis.call('HMGET', lease, 'owner', 'epoch')
  return held[1] == owner and held[2] == epoch
end

-- keys: lease, epoch, revision; args: owner, ttl_ms
-- -> {'HELD', epoch, last revision} | {'BUSY', epoch, owner}
-- An epoch is no less than the time, so that a broker that lost everything gives none twice either.
-- A lease ends at a time: when the clock went back, as much would be added. The next call finds and mends it.
local function acquire(keys, args)
  local held = redis.call('HMGET', keys[1], 'epoch', 'owner', 'ttl')
  if held[1] and held[2] ~= args[1] then
    local left, most = redis.call('PTTL', keys[1]), tonumber(held[3])
    if most and left > most then redis.call('PEXPIRE', keys[1], held[3]) end
    return {'BUSY', held[1], held[2]}
  end
  local no = denied({{'INCRBY', keys[2], 1}, {'HSET', keys[1], 'f', 'v'}, {'PEXPIRE', keys[1], 1}, {'GET', keys[3]}})
  if no then return no end
  local ahead = time_ms() - tonumber(redis.call('GET', keys[2]) or '0')
  local epoch = string.format('%.0f', redis.call('INCRBY', keys[2], string.format('%.0f', math.max(1, ahead))))
  redis.call('HSET', keys[1], 'epoch', epoch, 'owner', args[1], 'ttl', args[2])
  redis.call('PEXPIRE', keys[1], args[2])
  return {'HELD', epoch, redis.call('GET', keys[3]) or '0'}
end

-- keys: lease, revision; args: owner, epoch, ttl_ms (0 gives the lease back), the owner's last record
-- -> 1 when the lease was this one and that record is there: a broker that was restored may have lost it
local function renew(keys, args)
  if not holds(keys[1], args[1], args[2]) then return 0 end
  if tonumber(redis.call('GET', keys[2]) or '0') < tonumber(args[4]) then return 0 end
  if args[3] == '0' then
    redis.call('DEL', keys[1])
  else
    redis.call('HSET', keys[1], 'ttl', args[3])
    redis.call('PEXPIRE', keys[1], args[3])
  end
  return 1
end

-- The last id that a stream has given; 0-0 where there is no such stream.
local function last(key)
  local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  if newest then return newest[1] end
  if redis.call('EXISTS', key) == 0 then return '0-0' end
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return info[i + 1] end
  end
end

-- Writes one record and says its revision, and the entry of its decision ('-': a refusal).
local function write(keys, key, verdict, fields, cap)
  local revision, entry = tostring(redis.call('INCR', keys[7])), '-'
  if #fields > 0 then
    entry = redis.call('XADD', keys[6], '*', 'revision', revision, 'after', last(keys[8]), unpack(fields))
    redis.call('ZADD', keys[4], revision, key)
  else
    redis.call('ZADD', keys[5], revision, key)
    local over = redis.call('ZCARD', keys[5]) - cap
    if over > 0 then
      local out = redis.call('ZPOPMIN', keys[5], over)
      for i = 1, #out, 2 do redis.call('HDEL', keys[3], out[i]) end
    end
  end
  redis.call('HSET', keys[3], key, revision .. ' ' .. entry .. ' ' .. verdict)
  return revision, entry
end

-- keys: lease, epoch, verdicts, accepted, refused, decisions, revision, events
-- args: owner, epoch, cap of refused, then per record: key, verdict, number of fields, and the fields of its decision
-- (none: a refusal is recorded)
-- -> per record {'RECORDED' | 'DUPLICATE', revision, entry id, verdict} | {'FENCED', newest epoch}; the first that is
-- not recorded is the last.
-- A decision names the last event before it: the order of both streams does not follow from ids, whose clock may jump.
-- A known record is written once more: a broker that was killed may have read back what no disk had, and no caller may
-- get an answer before a disk has it.
local function commit(keys, args)
  local no = denied({
    {'INCR', keys[7]}, {'XADD', keys[6], '*', 'f', 'v'}, {'XREVRANGE', keys[8], '+', '-'}, {'EXISTS', keys[8]},
    {'XINFO', 'STREAM', keys[8]}, {'ZADD', keys[4], 1, 'm'}, {'ZADD', keys[5], 1, 'm'}, {'ZCARD', keys[5]},
    {'ZPOPMIN', keys[5], 1}, {'HDEL', keys[3], 'f'}, {'HSET', keys[3], 'f', 'v'},
  })
  if no then return no end
  local out, i = {}, 4
  while i <= #args do
    local key, verdict, n = args[i], args[i + 1], tonumber(args[i + 2])
    local first = redis.call('HGET', keys[3], key)
    if first then
      redis.call('HSET', keys[3], key, first)
      local revision, entry, said = string.match(first, '^(%d+) (%S+) (.*)$')
      out[#out + 1] = {'DUPLICATE', revision, entry, said}
      return out
    end
    if not holds(keys[1], args[1], args[2]) then
      out[#out + 1] = {'FENCED', redis.call('GET', keys[2]) or '0'}
      return out
    end
    local fields = {}
    for j = 1, n do fields[j] = args[i + 2 + j] end
    local revision, entry = write(keys, key, verdict, fields, tonumber(args[3]))
    out[#out + 1] = {'RECORDED', revision, entry, verdict}
    i = i + 3 + n
  end
  return out
end

-- keys: lease, verdicts, accepted, decisions, revision; args: owner, epoch, keep -> number forgotten, -1 when fenced
-- Forgets verdicts whose decision was trimmed, but never one of the newest `keep`.
local function forget(keys, args)
  if not holds(keys[1], args[1], args[2]) then return -1 end
  local newest = tonumber(redis.call('GET', keys[5]) or '0')
  local floor = newest - tonumber(args[3]) + 1
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
_NAMES: Final = ("trim", "cover", "lags", "bury", "acquire", "renew", "commit", "forget", "lacks")
# A full broker refuses whatever may write; it must still be able to say how full, and to give room back.
_FLAGS: Final = {
    "trim": "'allow-oom'",
    "cover": "'allow-oom'",
    "lags": "'no-writes', 'allow-oom'",
    "lacks": "'no-writes', 'allow-oom'",
}


def function_name(name: str) -> str:
    """The broker's name for one of our functions."""
    if name not in _NAMES:
        raise ValueError(f"no broker function {name!r}, expected one of {', '.join(_NAMES)}")
    return f"clearway_{_DIGEST}_{name}"


#: What `FUNCTION LOAD REPLACE` is given.
LIBRARY: Final = "\n".join(
    [f"#!lua name=clearway_{_DIGEST}", _CODE]
    + [
        f"redis.register_function{{function_name='{function_name(name)}', callback={name}, flags={{{flags}}}}}"
        for name in _NAMES
        for flags in (_FLAGS.get(name, ""),)
    ]
)
