// Open streams of events, and the one loop that serves them all (contract/media-library.md 3). Each stream has the
// moment it has reached, and the loop reads for a stream only when its reader has taken all. So one batch bounds its
// memory, and a slow reader loses nothing. Streams that are far behind are read apart, so that they keep none of the
// others waiting. Tests: live.test.ts, live-bounds.test.ts.
import { outsideTrace } from '@services/common/telemetry/spans'
import { listClipsById } from '../../../core/lists/clip-lists.store.ts'
import { findSessions } from '../../../core/tokens/browser-sessions.store.ts'
import { allows } from '../../../core/tokens/scopes.ts'
import { findScopes } from '../../../core/tokens/tokens.store.ts'
import { viewsOf } from '../../../core/views/find-views.ts'
import type { ChangeKind } from '../../../db/tables.ts'
import type { Deps } from '../../../deps.ts'
import { toDetails } from '../../../http/clip-details.ts'
import { type ClipChange, type Followed, findMoment, type Moment, readChanges, snapshotOf } from './changes.store.ts'

/** Workers note progress once a second. */
const READ_EVERY_MS = 1_000

/** Time after which a client returns too late. */
const RESUME_MS = 600_000

/** Bounds of one reading for one stream; more is a `reset`. One request changes 500 clips. */
export const MOST_CLIPS = 500
/** Progress of one clip is a change a second. */
export const MOST_CHANGES = 10_000

/** Time without a reading after which a stream is far behind. Many readings have failed then, or its reader is slow. */
const FAR_BEHIND_MS = 10_000

/** Clips whose details one reading holds; streams past them are read for a second later. */
const MOST_DETAILS = 2_000

/** Streams of one reading apart, at 18 ms each that `MOST_CHANGES` cost; the others follow by turns. */
const MOST_APART = 50

/** A caller, whose rights are checked with each reading. */
interface Caller extends Pick<Followed, 'clipsOf'> {
  tokenId: string
  sessionHash: Buffer | null
  onRefusal: () => void
}

interface Stream extends Caller, Followed {
  /** Id of the last event: for clients what `since` is for this process. */
  id: string
  /** Time of the last reading; 0 before the first of a stream that resumes. */
  readAt: number
  isBeingRead: boolean
  /** Blocks that its reader has not taken. */
  waiting: string[]
  wake: AbortController
}

type LiveDeps = Pick<Deps, 'db' | 'config' | 'log' | 'now'>
export type LiveStream = Awaited<ReturnType<ReturnType<typeof createLiveStreams>['open']>>

/** Reads changes for all streams and checks their callers, once a second, and nothing while no stream is open. */
export function createLiveStreams(deps: LiveDeps) {
  const { db, log, now } = deps
  const streams = new Set<Stream>()
  let timer: NodeJS.Timeout | undefined
  let isReading = false
  let isReadingApart = false

  const refuse = async () => {
    const open = [...streams]
    const hashes = open.flatMap(({ sessionHash }) => sessionHash ?? [])
    const [scopes, sessions] = await Promise.all([
      findScopes(db, [...new Set(open.map(({ tokenId }) => tokenId))], now()),
      hashes.length > 0 ? findSessions(db, hashes, now()) : [],
    ])
    for (const stream of open) {
      const { sessionHash, clipsOf, tokenId } = stream
      const rights = { scopes: scopes.get(tokenId) ?? [] }
      const hasSession = sessionHash === null || sessions.some(({ hash }) => hash.equals(sessionHash))
      if (hasSession && allows(rights, clipsOf === tokenId ? 'read' : 'admin')) continue
      streams.delete(stream)
      stream.onRefusal()
    }
  }

  const positionOf = ({ snapshot, oldest }: Moment) => {
    const at = now()
    return { since: snapshot, id: idOf(at, oldest), readAt: at.getTime() }
  }

  const read = async (due: readonly Stream[]) => {
    const most = { clips: MOST_CLIPS, changes: MOST_CHANGES }
    const { changes, ...moment } = await readChanges(db, due, most)
    const batches = due.map((stream, reader) =>
      toBatch(
        stream,
        changes.filter((change) => change.reader === reader),
      ),
    )
    const served = withinDetails(batches)
    const details = await describe(deps, served)
    const position = positionOf(moment)
    for (const { stream, isTooMuch, changes } of served)
      moveTo(stream, position, isTooMuch ? [RESET] : changes.flatMap((change) => toEvents(change, details)))
    // The others are the first of the next reading.
    for (const { stream } of served) if (streams.delete(stream)) streams.add(stream)
  }

  const readThose = async (areFarBehind: boolean) => {
    const latest = now().getTime() - FAR_BEHIND_MS
    const those = [...streams].filter(
      ({ waiting, isBeingRead, readAt }) => waiting.length === 0 && !isBeingRead && readAt < latest === areFarBehind,
    )
    const due = areFarBehind ? those.slice(0, MOST_APART) : those
    if (due.length === 0) return
    for (const stream of due) stream.isBeingRead = true
    try {
      await read(due)
    } catch (err) {
      if (!areFarBehind) throw err
      // They would fail again. Without a database this does, too, and they wait for it.
      const position = positionOf(await findMoment(db, '1'))
      log.warn({ err, streams: due.length }, 'changes of clips not read, streams that are far behind are reset')
      for (const stream of due) moveTo(stream, position, [RESET])
    } finally {
      for (const stream of due) stream.isBeingRead = false
    }
  }

  const warn = (err: unknown) => log.warn({ err }, 'changes of clips not read, will retry')

  const readApart = async () => {
    if (isReadingApart) return
    isReadingApart = true
    await readThose(true).catch(warn)
    isReadingApart = false
  }

  const readAll = async () => {
    if (isReading) return
    isReading = true
    try {
      await refuse()
      void readApart()
      await readThose(false)
    } catch (err) {
      warn(err)
    }
    isReading = false
  }

  return {
    /** Opens a stream after the event of this id. Call `close` at its end. */
    open: async (caller: Caller, lastId: string | undefined) => {
      const [, time = '', oldest = ''] = /^(\d{1,15})\.([1-9]\d{0,18})$/.exec(lastId ?? '') ?? []
      const isRecent = oldest !== '' && Math.abs(now().getTime() - Number(time)) <= RESUME_MS
      const { isLater, ...moment } = await findMoment(db, isRecent ? oldest : '1')
      const resumes = isRecent && isLater
      const begin = resumes ? { since: snapshotOf(oldest), id: lastId as string, readAt: 0 } : positionOf(moment)
      const isLost = lastId !== undefined && !resumes
      const waiting = [...(isLost ? [RESET] : []), toId(begin.id)]
      const stream: Stream = { ...caller, ...begin, isBeingRead: false, waiting, wake: new AbortController() }
      streams.add(stream)
      timer ??= outsideTrace(() => setInterval(readAll, READ_EVERY_MS))
      return {
        take: (): string | undefined => stream.waiting.shift(),
        /** Block that moves the client to the moment it has reached. */
        position: () => toId(stream.id),
        /** Aborts with the next block. */
        next: (): AbortSignal => {
          if (stream.wake.signal.aborted) stream.wake = new AbortController()
          return stream.wake.signal
        },
        close: () => {
          streams.delete(stream)
          if (streams.size > 0) return
          clearInterval(timer)
          timer = undefined
        },
      }
    },
  }
}

type Position = Pick<Stream, 'since' | 'id' | 'readAt'>

function moveTo(stream: Stream, position: Position, blocks: readonly string[]): void {
  Object.assign(stream, position)
  if (blocks.length === 0) return
  stream.waiting = [...blocks, toId(position.id)]
  stream.wake.abort()
}

interface Batch {
  stream: Stream
  isTooMuch: boolean
  changes: readonly ClipChange[]
}

function toBatch(stream: Stream, changes: readonly ClipChange[]): Batch {
  const rows = changes.reduce((sum, change) => sum + change.rows, 0)
  const isTooMuch = changes.length > MOST_CLIPS || rows > MOST_CHANGES
  return { stream, isTooMuch, changes: isTooMuch ? [] : changes }
}

/** The first batches whose details are not too many, at least one. */
function withinDetails(batches: readonly Batch[]): Batch[] {
  let clips = 0
  return batches.filter(({ changes }, index) => {
    clips += changes.length
    return index === 0 || clips <= MOST_DETAILS
  })
}

/** Details of the changed clips by id, as JSON; those that are deleted or expired are absent. */
async function describe(deps: LiveDeps, batches: readonly Batch[]): Promise<Map<string, string>> {
  const { db, config, now } = deps
  const ids = [...new Set(batches.flatMap(({ changes }) => changes.filter(isThere).map(({ clipId }) => clipId)))]
  if (ids.length === 0) return new Map()
  const [clips, views] = [await listClipsById(db, ids, now()), await viewsOf(deps, db, ids)]
  return new Map(
    clips.map(({ files, ...clip }) => {
      const details = toDetails(clip, clip.isShowable ? files : [], config.site, views.get(clip.id))
      return [clip.id, JSON.stringify(details)]
    }),
  )
}

const isThere = ({ kinds }: ClipChange) => !kinds.includes('deleted')

/** Blocks of a changed clip, with its details of now: a state in between is of no use later. */
function toEvents(change: ClipChange, details: ReadonlyMap<string, string>): string[] {
  const data = details.get(change.clipId)
  if (data === undefined) return [toBlock('deleted', JSON.stringify({ id: change.clipId, state: 'deleted' }))]
  const has = (kind: ChangeKind) => change.kinds.includes(kind)
  const decided = (['ready', 'failed'] as const).filter(has)
  const kinds = has('created') ? ['created', ...decided] : decided
  const [usual] = (['updated', 'processing'] as const).filter(has)
  return (kinds.length > 0 || !usual ? kinds : [usual]).map((kind) => toBlock(kind, data))
}

const toBlock = (event: string, data: string) => `event: ${event}\ndata: ${data}\n\n`

const RESET = toBlock('reset', '{}')

/** Without data it is no event, and comes after all events up to it: a client that lost some asks for them again. */
const toId = (id: string) => `id: ${id}\n\n`

/** Time, by which its age is known, and the oldest transaction that may be missing. */
const idOf = (time: Date, oldest: string) => `${time.getTime()}.${oldest}`
