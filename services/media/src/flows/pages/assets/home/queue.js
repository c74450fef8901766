// The rows of the list on the page at `/`: which are sent, wait, or go on, and what a refusal changes. Nothing here
// knows the page or the network. Tests: ../../home/queue.test.ts.
//
// A row goes from `draft` over `waiting`, `sending` and `making` to `ready`, or is `paused`, `refused`, `cancelled`.

/** Rows that are sent at once. */
export const AT_ONCE = 3

/** Clips in the making that are followed at once: each takes a connection, of which a browser has six. */
export const FOLLOWED = 2

/** Whether the next request of a row has the key of an earlier one, so that it has to say the same. */
export const isRepeated = ({ key, sentKey }) => key === sentKey

/**
 * `send(row, {signal, report})` resolves with the accepted clip, `follow` with the ready one, or with undefined when it
 * gives up its turn. Both throw a Problem. `discard` drops bytes that were sent. `changed` hears of each change.
 */
export function createQueue({ send, follow, discard, changed, newKey, now = Date.now, later = setTimeout }) {
  const rows = []
  const jobs = new Map()
  const followed = new Set()
  /** Rows in the making, the next to follow first. */
  let made = []
  const heldUntil = { file: 0, address: 0 }

  const inState = (...states) => rows.filter(({ state }) => states.includes(state))

  function set(row, change) {
    Object.assign(row, change)
    changed(row)
  }

  function advance() {
    const free = AT_ONCE - inState('sending').length
    const next = inState('waiting').filter(({ kind }) => heldUntil[kind] <= now())
    for (const row of next.slice(0, Math.max(0, free))) void run(row)
    for (const row of made.filter((each) => !followed.has(each)).slice(0, FOLLOWED - followed.size)) void watch(row)
  }

  async function run(row) {
    const job = new AbortController()
    jobs.set(row, job)
    row.sentKey = row.key
    const isCurrent = () => jobs.get(row) === job
    const report = (step, fraction, detail = '') => isCurrent() && set(row, { step, fraction, detail })
    set(row, { state: 'sending', problem: undefined, until: undefined, step: '', fraction: 0, detail: '' })
    try {
      const accepted = await send(row, { signal: job.signal, report })
      if (!isCurrent()) return
      made.push(row)
      set(row, { state: 'making', accepted, fraction: undefined, detail: '' })
    } catch (problem) {
      if (isCurrent()) settle(row, problem)
    } finally {
      if (isCurrent()) jobs.delete(row)
      advance()
    }
  }

  /** A limit holds all rows of its kind; a refusal of the caller ends all that wait; any other is that of the row. */
  function settle(row, problem) {
    const { retryAfterSeconds, ofCaller, code } = problem
    if (retryAfterSeconds !== undefined) {
      const until = now() + retryAfterSeconds * 1_000
      heldUntil[row.kind] = Math.max(heldUntil[row.kind], until)
      set(row, { state: 'waiting', until })
      later(() => release(row.kind, until), retryAfterSeconds * 1_000)
      return
    }
    // After an answer of the service a repetition is a new request.
    set(row, { state: 'refused', problem, ...(code && { key: newKey() }) })
    if (ofCaller) for (const each of inState('waiting')) set(each, { state: 'refused', problem })
  }

  function release(kind, until) {
    if (heldUntil[kind] === until) heldUntil[kind] = 0
    advance()
  }

  async function watch(row) {
    followed.add(row)
    const report = (step, fraction, detail = '') => set(row, { step, fraction, detail })
    try {
      const result = await follow(row, { report })
      made = made.filter((each) => each !== row)
      if (result) set(row, { state: 'ready', result })
      else made.push(row)
    } catch (problem) {
      made = made.filter((each) => each !== row)
      set(row, { state: 'refused', problem, key: newKey() })
    } finally {
      followed.delete(row)
      advance()
    }
  }

  function stop(row, state) {
    jobs.get(row)?.abort(new Error(state))
    jobs.delete(row)
    set(row, { state, until: undefined })
    advance()
  }

  return {
    rows,
    add(row) {
      rows.push({ state: 'draft', key: newKey(), place: {}, ...row })
      return rows.at(-1)
    },
    remove(row) {
      rows.splice(rows.indexOf(row), 1)
    },
    /** Starts rows with the fields that they share. A repetition of a request keeps those of before. */
    start(some, fields) {
      for (const row of some) {
        set(row, { state: 'waiting', fields: isRepeated(row) ? row.fields : fields, problem: undefined })
      }
      advance()
    },
    pause: (row) => stop(row, 'paused'),
    goOn(row) {
      set(row, { state: 'waiting' })
      advance()
    },
    cancel(row) {
      stop(row, 'cancelled')
      discard(row)
    },
    inState,
    /** Whether a closed page would lose something. */
    isBusy: () => inState('waiting', 'sending', 'paused').length > 0,
    count: () => ({
      all: rows.length - inState('draft').length,
      ready: inState('ready').length,
      refused: inState('refused', 'cancelled').length,
    }),
  }
}
