import { backoff, pause, waitBefore } from './call.ts'
import { type Connection, open, pathOf } from './exchange.ts'
import { MediaError, networkError, toMediaError } from './media-error.ts'
import { type ServerEvent, serverEvents } from './server-events.ts'
import type { Clip, ClipEvent, LiveEvent } from './shapes.ts'

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
      for await (const event of connect(connection, `${pathOf(id)}/events`, lastId, signal)) {
        failures = 0
        lastId = event.id ?? lastId
        waitMs = retryOf(event) ?? waitMs
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

/**
 * Yields changes of all clips of a token, without end. Reconnects with `Last-Event-ID`, so that none is missed; one may
 * come twice. `after` is the id of an earlier position.
 */
export async function* watchClips(
  connection: Connection,
  {
    signal,
    after,
    token,
  }: { signal?: AbortSignal | undefined; after?: string | undefined; token?: string | undefined },
): AsyncGenerator<LiveEvent, void, undefined> {
  const path = `/media/events${token === undefined ? '' : `?${new URLSearchParams({ token })}`}`
  let lastId = after
  for (let failures = 0; ; ) {
    let waitMs: number | undefined
    try {
      for await (const event of connect(connection, path, lastId, signal)) {
        failures = 0
        waitMs = retryOf(event) ?? waitMs
        const change = toLiveEvent(event)
        if (change) yield change
        // Not before: a caller that was interrupted in between gets the event again.
        if (event.id === undefined) continue
        lastId = event.id
        yield { type: 'position', after: lastId }
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (!(error instanceof MediaError)) throw error
      waitMs = waitBefore(error, failures++)
      if (waitMs === undefined) throw error
    }
    await pause(waitMs ?? backoff(failures), signal)
  }
}

const CHANGES = ['created', 'processing', 'ready', 'failed', 'updated'] as const

/** Undefined for a block without data, and for events of a newer service. */
function toLiveEvent({ event, data }: ServerEvent): LiveEvent | undefined {
  if (!data) return undefined
  if (event === 'reset') return { type: event }
  const clip = JSON.parse(data) as Clip
  if (event === 'deleted') return { type: event, id: clip.id }
  const type = CHANGES.find((known) => known === event)
  return type && { type, id: clip.id, clip }
}

const retryOf = ({ retryMs }: ServerEvent) =>
  retryMs === undefined ? undefined : Math.min(LONGEST_RETRY_MS, Math.max(SHORTEST_RETRY_MS, retryMs))

/** Ends with the connection. Throws a MediaError for a refusal, and for a connection that breaks or falls silent. */
async function* connect(
  connection: Connection,
  path: string,
  lastId: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  const ended = new AbortController()
  const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) }
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
