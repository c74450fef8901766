import { regardlessOfDeadline } from '@services/common/request-deadline'

/** Shortest time between a failed fetch and the next: anyone can name an address, which is another server's. */
const PAUSE_MS = 30_000

interface Kept<Value> {
  value: Promise<Value>
  state: 'running' | 'done' | 'failed'
  /** Start, in milliseconds since 1970. */
  at: number
}

/** Values fetched by address, of one process; of too many the least recently used one is fetched anew. */
export class SharedFetches<Value> {
  readonly #kept = new Map<string, Kept<Value>>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get addresses(): readonly string[] {
    return [...this.#kept.keys()]
  }

  /**
   * Returns the value of an address: of a running fetch, of one that began less than `maxAgeMs` ago, or of a new one.
   * A failure serves for 30 s. A fetch outlives its request, because others may wait for it.
   */
  get(address: string, request: { now: Date; maxAgeMs: number }, fetch: () => Promise<Value>): Promise<Value> {
    const at = request.now.getTime()
    const known = this.#kept.get(address)
    const current = known && isValid(known, at, request.maxAgeMs) ? known : start(at, fetch)
    this.#kept.delete(address)
    this.#kept.set(address, current)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > this.#capacity && oldest !== undefined) this.#kept.delete(oldest)
    return current.value
  }
}

function isValid({ state, at: begin }: Kept<unknown>, at: number, maxAgeMs: number): boolean {
  if (state === 'running') return true
  return at - begin < (state === 'failed' ? PAUSE_MS : maxAgeMs)
}

function start<Value>(at: number, fetch: () => Promise<Value>): Kept<Value> {
  const fetched: Kept<Value> = { value: regardlessOfDeadline(fetch), state: 'running', at }
  fetched.value.then(
    () => {
      fetched.state = 'done'
    },
    () => {
      fetched.state = 'failed'
    },
  )
  return fetched
}
