import { setTimeout as sleep } from 'node:timers/promises'
import type { ClipState } from '../../core/clips/clip-states.store.ts'
import { errorCatalogue } from '../../errors.ts'

/** What a client that lost its connection waits before it asks again. */
const RETRY_MS = 2_000

export const isFinal = ({ state }: Pick<ClipState, 'state'>): boolean => state !== 'processing'

/**
 * Server-sent events of a clip: how it is now, each change, and a comment when nothing happened for `heartbeatMs`, so that
 * proxies keep the connection and dead ones are noticed. Ends with the last state or when `signal` aborts. Who reads slowly
 * misses states in between, never the last one: nothing is kept but the newest.
 */
export async function* streamStates(
  first: ClipState,
  {
    subscribe,
    heartbeatMs,
    signal,
  }: { subscribe: (tell: (state: ClipState) => void) => () => void; heartbeatMs: number; signal: AbortSignal },
): AsyncGenerator<string> {
  let newest = first
  let wake = new AbortController()
  const unsubscribe = subscribe((state) => {
    if (isFinal(newest) || isSame(state, newest)) return
    newest = state
    wake.abort()
  })
  try {
    yield `retry: ${RETRY_MS}\n\n`
    for (let said: ClipState | undefined; !signal.aborted; ) {
      if (newest !== said) {
        wake = new AbortController()
        said = newest
        yield toEvent(said)
        if (isFinal(said)) return
      } else if (!(await isWoken(heartbeatMs, wake.signal, signal))) yield ': still here\n\n'
    }
  } finally {
    unsubscribe()
  }
}

const isSame = (a: ClipState, b: ClipState) => a.state === b.state && a.progress === b.progress

/** False when the time was over first. */
async function isWoken(ms: number, ...signals: AbortSignal[]): Promise<boolean> {
  return sleep(ms, false, { signal: AbortSignal.any(signals) }).catch(() => true)
}

/** The state is also the event's name, and the id of the last one: who asks again after that has heard everything. */
function toEvent({ state, progress, errorCode }: ClipState): string {
  const failure = errorCode && { code: errorCode, message: errorCatalogue[errorCode].message }
  const data = { state, progress: state === 'ready' ? 1 : progress, ...(failure && { failure }) }
  return `${isFinal({ state }) ? `id: ${state}\n` : ''}event: ${state}\ndata: ${JSON.stringify(data)}\n\n`
}
