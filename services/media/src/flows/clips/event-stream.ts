import { setTimeout as sleep } from 'node:timers/promises'
import type { ClipState } from '../../core/clips/clip-states.store.ts'
import { errorCatalogue } from '../../errors.ts'

/** Delay before a client reconnects. */
const RETRY_MS = 2_000

export const isFinal = ({ state }: Pick<ClipState, 'state'>): boolean => state !== 'processing'

/**
 * Server-sent events of a clip: its state, each change, and a comment after each idle `heartbeatMs`, so that proxies
 * keep the connection and dead ones are noticed. Ends with the final state or when `signal` aborts. A slow reader skips
 * states in between, but not the final one, because only the newest is kept.
 */
export async function* streamStates(
  first: ClipState,
  {
    subscribe,
    heartbeatMs,
    signal,
  }: { subscribe: (onState: (state: ClipState) => void) => () => void; heartbeatMs: number; signal: AbortSignal },
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
    for (let sent: ClipState | undefined; !signal.aborted; ) {
      if (newest !== sent) {
        wake = new AbortController()
        sent = newest
        yield toEvent(sent)
        if (isFinal(sent)) return
      } else if (!(await isWoken(heartbeatMs, wake.signal, signal))) yield ': still here\n\n'
    }
  } finally {
    unsubscribe()
  }
}

const isSame = (a: ClipState, b: ClipState) => a.state === b.state && a.progress === b.progress

/** False when the time ended first. */
async function isWoken(ms: number, ...signals: AbortSignal[]): Promise<boolean> {
  return sleep(ms, false, { signal: AbortSignal.any(signals) }).catch(() => true)
}

/** The state is also the event's name, and the id of the final event: a client that returns with it needs no more. */
function toEvent({ state, progress, errorCode }: ClipState): string {
  const failure = errorCode && { code: errorCode, message: errorCatalogue[errorCode].message }
  const data = { state, progress: state === 'ready' ? 1 : progress, ...(failure && { failure }) }
  return `${isFinal({ state }) ? `id: ${state}\n` : ''}event: ${state}\ndata: ${JSON.stringify(data)}\n\n`
}
