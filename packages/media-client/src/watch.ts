import { backoff, pause, waitBefore } from './call.ts'
import { type Connection, open, pathOf } from './exchange.ts'
import { MediaError, networkError, toMediaError } from './media-error.ts'
import { type ServerEvent, serverEvents } from './server-events.ts'
import type { ClipEvent } from './shapes.ts'

/** The service sends something every 15 seconds; a connection without it is dead. */
const SILENT_MS = 60_000

/** Bounds of the pause that a server asks for. */
const [SHORTEST_RETRY_MS, LONGEST_RETRY_MS] = [500, 60_000]

const FINAL = ['ready', 'failed', 'hidden', 'deleted']

/**
 * Yields each change of a clip, and ends with its final state. Reconnects after lost connections with `Last-Event-ID`,
 * as an EventSource does, which cannot send a token. No change is yielded twice.
 */
export async function* watchClip(
  connection: Connection,
  id: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<ClipEvent, void, undefined> {
  const files = new Set<string>()
  let state = ''
  let lastId: string | undefined
  for (let failures = 0; ; ) {
    let waitMs: number | undefined
    try {
      for await (const event of connect(connection, id, lastId, signal)) {
        failures = 0
        lastId = event.id ?? lastId
        waitMs =
          event.retryMs === undefined ? waitMs : Math.min(LONGEST_RETRY_MS, Math.max(SHORTEST_RETRY_MS, event.retryMs))
        const change = toChange(event)
        if (!change || event.data === state || files.has(event.data)) continue
        if (change.type === 'file') files.add(event.data)
        else state = event.data
        yield change
        if (FINAL.includes(change.type)) return
      }
      if (lastId !== undefined) return
    } catch (error) {
      signal?.throwIfAborted()
      if (!(error instanceof MediaError)) throw error
      // Deleted while we were disconnected.
      if (error.status === 410 && state !== '') return yield { type: 'deleted', progress: 0 }
      waitMs = waitBefore(error, failures++)
      if (waitMs === undefined) throw error
    }
    await pause(waitMs ?? backoff(failures), signal)
  }
}

/** Ends with the connection. Throws a MediaError for a refusal, and for a connection that breaks or falls silent. */
async function* connect(
  connection: Connection,
  id: string,
  lastId: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  const ended = new AbortController()
  const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) }
  const path = `${pathOf(id)}/events`
  let timer: ReturnType<typeof setTimeout> | undefined
  const wake = () => {
    clearTimeout(timer)
    timer = setTimeout(() => ended.abort(), SILENT_MS)
  }
  try {
    wake()
    const both = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
    const response = await open(connection, { method: 'GET', path, headers, signal: both })
    if (response.status === 204) return
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    // A page of a proxy is none.
    if (!response.ok || !response.body || !isStream) {
      throw toMediaError(response.status, response.headers, await response.text())
    }
    yield* serverEvents(response.body, wake)
  } catch (error) {
    throw error instanceof MediaError ? error : networkError(error)
  } finally {
    clearTimeout(timer)
    // Also when the caller leaves the loop.
    ended.abort()
  }
}

function toChange({ event, data }: ServerEvent): ClipEvent | undefined {
  if (!data) return undefined
  const { file, bytes, progress, failure } = JSON.parse(data)
  if (event === 'file') return { type: 'file', file, bytes }
  if (event === 'failed') return { type: event, progress, failure }
  return isPlain(event) ? { type: event, progress } : undefined
}

const PLAIN = ['processing', 'ready', 'hidden', 'deleted'] as const

const isPlain = (event: string): event is (typeof PLAIN)[number] => PLAIN.some((known) => known === event)
