// The rows of the list at `/`, without a browser: sending and following are promises that the test settles.
import { describe, expect, test } from 'vitest'

interface Row {
  name: string
  kind: string
  state: string
  key: string
  fields?: object
  problem?: object
  result?: object
  fraction?: number
  until?: number
}

type Report = (step: string, fraction?: number) => void
type Call = {
  row: Row
  signal: AbortSignal
  report: Report
  done(accepted?: object): void
  fail(problem: object): void
}

const SCRIPT = new URL('../assets/home/queue.js', import.meta.url).href
const { createQueue } = await import(SCRIPT)

const REFUSED = { message: 'Only GIF.', code: 'unsupported_media_type' }
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** A queue of drafts with these names, and all that it does. */
function openQueue(...names: string[]) {
  const [sent, watched]: [Call[], Call[]] = [[], []]
  const discarded: Row[] = []
  let time = 0
  let timers: { at: number; run(): void }[] = []
  let keys = 0
  const called =
    (calls: Call[]) =>
    (row: Row, { signal, report }: Pick<Call, 'signal' | 'report'>) =>
      new Promise((done, fail) => calls.push({ row, signal, report, done, fail }))
  const queue = createQueue({
    send: called(sent),
    follow: called(watched),
    discard: (row: Row) => discarded.push(row),
    changed: () => {},
    newKey: () => `key ${++keys}`,
    now: () => time,
    later: (run: () => void, ms: number) => timers.push({ at: time + ms, run }),
  })
  const rows: Row[] = names.map((name) => queue.add({ name, kind: name.startsWith('http') ? 'address' : 'file' }))
  const wait = (seconds: number) => {
    time += seconds * 1_000
    const due = timers.filter(({ at }) => at <= time)
    timers = timers.filter(({ at }) => at > time)
    for (const { run } of due) run()
  }
  const states = () => rows.map(({ state }) => state)
  const sendingOf = (row: Row | undefined) => sent.findLast((call) => call.row === row)
  return { queue, rows, sent, watched, discarded, wait, states, sendingOf }
}

const NAMES = ['1.gif', '2.gif', '3.gif', '4.gif', '5.gif']

describe('rows', () => {
  test('are sent three at a time, in their order, with the fields of their start', async () => {
    const { queue, rows, sent, states } = openQueue(...NAMES)
    queue.start(rows, { tags: 'a' })
    expect(states()).toEqual(['sending', 'sending', 'sending', 'waiting', 'waiting'])
    sent[1]?.done()
    await settled()
    expect(states()).toEqual(['sending', 'making', 'sending', 'sending', 'waiting'])
    expect(rows[3]?.fields).toEqual({ tags: 'a' })
  })

  test('that are refused stop no others, and are sent again as a new request', async () => {
    const { queue, rows, sent, states } = openQueue(...NAMES)
    queue.start(rows, {})
    const key = rows[0]?.key
    sent[0]?.fail(REFUSED)
    await settled()
    expect(states()).toEqual(['refused', 'sending', 'sending', 'sending', 'waiting'])
    expect(rows[0]).toMatchObject({ problem: REFUSED })
    expect(rows[0]?.key).not.toBe(key)
    queue.start([rows[0]], { tags: 'b' })
    expect(rows[0]).toMatchObject({ state: 'waiting', problem: undefined, fields: { tags: 'b' } })
  })

  test('whose answer was lost are sent again with the same key and fields, so that no second clip results', async () => {
    const { queue, rows, sent } = openQueue('1.gif')
    queue.start(rows, { tags: 'a' })
    const key = rows[0]?.key
    sent[0]?.fail({ message: 'The service cannot be reached.' })
    await settled()
    queue.start(rows, { tags: 'b' })
    expect([sent.length, rows[0]?.key, rows[0]?.fields]).toEqual([2, key, { tags: 'a' }])
  })

  test('that meet a limit wait as long as it says, hold others of their kind alone, and go on by themselves', async () => {
    const { queue, rows, sent, wait, states } = openQueue('1.gif', '2.gif', '3.gif', '4.gif', 'https://a.example')
    queue.start(rows, {})
    sent[0]?.fail({ message: 'Too many requests.', code: 'rate_limited', retryAfterSeconds: 60 })
    await settled()
    expect(states()).toEqual(['waiting', 'sending', 'sending', 'waiting', 'sending'])
    expect(rows[0]?.until).toBe(60_000)
    sent[1]?.done()
    await settled()
    expect(states()).toEqual(['waiting', 'making', 'sending', 'waiting', 'sending'])
    wait(59)
    expect(states()[0]).toBe('waiting')
    wait(1)
    expect(states()).toEqual(['sending', 'making', 'sending', 'waiting', 'sending'])
    expect(rows[0]?.until).toBeUndefined()
  })

  test('of a refused token all end, those on their way by their own answer', async () => {
    const { queue, rows, sent, states } = openQueue(...NAMES)
    queue.start(rows, {})
    sent[0]?.fail({ message: 'This token is unknown.', ofCaller: true })
    await settled()
    expect(states()).toEqual(['refused', 'sending', 'sending', 'refused', 'refused'])
    expect(sent).toHaveLength(3)
  })

  test('pause and go on, before they are sent and while they are', async () => {
    const { queue, rows, sent, states, sendingOf } = openQueue(...NAMES)
    queue.start(rows, {})
    queue.pause(rows[0])
    queue.pause(rows[4])
    expect(states()).toEqual(['paused', 'sending', 'sending', 'sending', 'paused'])
    expect(sent[0]?.signal.aborted).toBe(true)
    // The end of the call that was paused comes late.
    sent[0]?.fail(new Error('paused'))
    sent[0]?.report('Uploading', 0.9)
    await settled()
    expect([states()[0], rows[0]?.fraction]).toEqual(['paused', 0])
    queue.goOn(rows[0])
    expect(states()[0]).toBe('waiting')
    sent[1]?.done()
    await settled()
    expect(states()).toEqual(['sending', 'making', 'sending', 'sending', 'paused'])
    expect(sendingOf(rows[0])).not.toBe(sent[0])
  })

  test('that are cancelled drop what was sent, and free their place', async () => {
    const { queue, rows, sent, discarded, states } = openQueue(...NAMES)
    queue.start(rows, {})
    queue.cancel(rows[0])
    expect(states()).toEqual(['cancelled', 'sending', 'sending', 'sending', 'waiting'])
    expect([sent[0]?.signal.aborted, discarded]).toEqual([true, [rows[0]]])
    sent[0]?.done()
    await settled()
    expect(states()[0]).toBe('cancelled')
  })
})

describe('clips in the making', () => {
  test('are followed two at a time, and those that give up their turn come last', async () => {
    const { queue, rows, sent, watched, states } = openQueue('1.gif', '2.gif', '3.gif')
    queue.start(rows, {})
    for (const call of sent) call.done()
    await settled()
    expect(watched.map(({ row }) => row)).toEqual([rows[0], rows[1]])
    watched[0]?.report('Making', 0.5)
    expect(rows[0]?.fraction).toBe(0.5)
    watched[0]?.done()
    await settled()
    expect(watched.map(({ row }) => row)).toEqual([rows[0], rows[1], rows[2]])
    watched[1]?.done({ page: 'x' })
    await settled()
    expect(watched.at(-1)?.row).toBe(rows[0])
    expect(states()).toEqual(['making', 'ready', 'making'])
    expect(rows[1]?.result).toEqual({ page: 'x' })
  })

  test('that fail are refused rows, and are added anew', async () => {
    const { queue, rows, sent, watched, states } = openQueue('1.gif')
    queue.start(rows, {})
    const key = rows[0]?.key
    sent[0]?.done()
    await settled()
    watched[0]?.fail({ message: 'The clip could not be made.' })
    await settled()
    expect(states()).toEqual(['refused'])
    expect(rows[0]?.key).not.toBe(key)
  })
})

test('a page may be left when nothing waits or is on its way', async () => {
  const { queue, rows, sent } = openQueue('1.gif', '2.gif')
  expect([queue.isBusy(), queue.count()]).toEqual([false, { all: 0, ready: 0, refused: 0 }])
  queue.start(rows, {})
  expect(queue.isBusy()).toBe(true)
  sent[0]?.done()
  await settled()
  queue.pause(rows[1])
  expect(queue.isBusy()).toBe(true)
  queue.cancel(rows[1])
  expect([queue.isBusy(), queue.count()]).toEqual([false, { all: 2, ready: 0, refused: 1 }])
})
