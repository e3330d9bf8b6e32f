# Starting, watching and ending a world's programs.
#
# Each program leads a process group of its own. Its pid file also holds when it
# started, so that a pid that meanwhile belongs to somebody else is never
# signalled; and each carries LIFTLOCK_LAB_WORLD in its environment, so that one
# whose pid file was lost in a crash is still found.
# shellcheck shell=bash

# started PID: when the process started, in ticks since the machine did; fails when it is gone or dead.
started() {
  local stat state
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  read -r -a state <<<"${stat##*) }"
  [ "${state[0]}" != Z ] && echo "${state[19]}"
}

# pid_of NAME: the running program's process; fails when it doesn't run.
pid_of() {
  local pid since
  [ -f "${STATE:?}/$1.pid" ] && read -r pid since <"$STATE/$1.pid" && [ "$(started "$pid")" = "$since" ] && echo "$pid"
}

alive() { pid_of "$1" >/dev/null; }

# spawn NAME COMMAND...: starts the program in the background, or again when its settings changed.
spawn() {
  local name=$1 want pid; shift
  want=$(printf '%q ' "$@")
  if alive "$name"; then
    [ "$(cat "$STATE/$name.command")" = "$want" ] && return
    say "$name has other settings now: starting it again"
    signal "$name" TERM; stop "$name"
  fi
  [ -f "$LOGS/$name.log" ] && mv "$LOGS/$name.log" "$LOGS/$name.previous.log"
  mkdir -p "$DATA/home" "$DATA/tmp"
  HOME=$DATA/home TMPDIR=$DATA/tmp LIFTLOCK_LAB_WORLD=$WORLD setsid "$@" >"$LOGS/$name.log" 2>&1 </dev/null 8>&- 9>&- &
  pid=$!
  echo "$pid $(started "$pid")" >"$STATE/$name.pid"
  printf '%s' "$want" >"$STATE/$name.command"
}

# wait_for NAME SECONDS COMMAND...: until the command succeeds, as long as the program lives.
wait_for() {
  local name=$1 seconds=$2 until; shift 2
  until=$((SECONDS + seconds))
  while ! "$@" >/dev/null 2>&1; do
    alive "$name" || failed "$name" 'ended while it was starting'
    ((SECONDS < until)) || failed "$name" "was not ready within $seconds s"
    sleep 0.2
  done
}

failed() {
  say "$1 $2; the end of $LOGS/$1.log:"
  tail -n 15 "$LOGS/$1.log" >&2 || true
  exit 1
}

# signal NAME SIGNAL: to the program's whole group.
signal() {
  local pid
  if pid=$(pid_of "$1"); then kill -s "$2" -- "-$pid" 2>/dev/null || true; fi
}

# stop NAME: waits for a program that was told to end, and kills it when it doesn't.
stop() {
  local pid tries=0
  while alive "$1"; do
    ((tries++ < 100)) || { say "$1 doesn't end by itself: killing it"; signal "$1" KILL; }
    sleep 0.1
  done
  rm -f "$STATE/$1.pid" "$STATE/$1.command"
}

# strays lists the processes that carry this world's mark.
strays() {
  local environ pid
  for environ in /proc/[0-9]*/environ; do
    pid=${environ#/proc/}; pid=${pid%/environ}
    if started "$pid" >/dev/null && { tr '\0' '\n' <"$environ" | grep -qxF "LIFTLOCK_LAB_WORLD=$WORLD"; } 2>/dev/null; then echo "$pid"; fi
  done
}

# stop_strays kills what no pid file knows, and returns when it is gone.
stop_strays() {
  local pid pids=() tries=0
  while mapfile -t pids < <(strays); [ "${#pids[@]}" -gt 0 ]; do
    [ "$tries" -gt 0 ] || say "killing ${#pids[@]} processes left over from an earlier run: ${pids[*]}"
    ((tries++ < 50)) || die "could not kill ${pids[*]}"
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    sleep 0.1
  done
}
