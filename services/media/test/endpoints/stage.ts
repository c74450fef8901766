// Clips behind the endpoints: one made clip, whose bytes all others share. A step is what an owner or a moderator does.
// Only the bytes of processing and failed clips are rows of the test.
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { createLink, type LinkTarget } from '../../src/core/clip-access/share-links.ts'
import { signVariant } from '../../src/flows/files/variants/signature.ts'
import { blobKey } from '../../src/store/blobs/blob-storage.ts'
import { gif } from '../gif-bytes.ts'
import { type FormFields, idIn, startTestService, type TestService } from '../service.ts'

export const SECRET_TITLE = 'A title that only its owner may read'

/** An id that no clip ever had. */
export const UNKNOWN_ID = 'zzzzzzzz'

const VARIANT_KEY = 'a key of this test alone'

/** Address of a variant that the operator signed. */
export const signed = (options: string, file: string) =>
  `/v/${signVariant(VARIANT_KEY, `/${options}/${file}`)}/${options}/${file}`

/** Wider than most variants, low enough to be encoded in no time, and of two seconds. */
const wideGif = gif(500, 20, [{ delay: 100 }, { delay: 100, color: 1 }])

const ANIMATED = ['w240.gif', 'w480.mp4', 'w320.anim.webp']

export interface StagedClip {
  id: string
  /** Query of a link, by the address that it is signed for. */
  links: Record<string, string>
}

export type Step = keyof ReturnType<typeof stepsOf>
export type SourceState = 'ready' | 'processing' | 'failed'
export const sourceStates: SourceState[] = ['ready', 'processing', 'failed']

export type Stage<Other extends string = never> = Awaited<ReturnType<typeof openStage<Other>>>

/** Starts the service, and processes beside it on the same database and files with other settings. */
export async function openStage<Other extends string = never>(
  settings: Record<string, string> = {},
  besides: Record<Other, Record<string, string>> = {} as Record<Other, never>,
) {
  const common = {
    MEDIA_VARIANT_KEY: VARIANT_KEY,
    MEDIA_RATE_LIMIT_READ: '100000/1m',
    MEDIA_RATE_LIMIT_HEADER: 'x-client',
  }
  const service = await startTestService({ ...common, ...settings })
  const shared = {
    MEDIA_DATABASE_URL: service.deps.config.database.url,
    MEDIA_BLOBS_DIR: service.blobsDir,
    MEDIA_WORKERS_ENABLED: 'false',
  }
  const others = {} as Record<Other, TestService>
  for (const [name, own] of Object.entries(besides) as [Other, Record<string, string>][]) {
    others[name] = await startTestService({ ...common, ...shared, ...own })
  }
  const services: TestService[] = [service, ...(Object.values(others) as TestService[])]
  const admin = (await service.newToken({ scopes: ['admin'] })).token
  const stranger = (await service.newToken()).token
  const sources = await makeSources(service)
  const newClip = (source: SourceState = 'ready') => addClip(service, sources[source])
  const steps = stepsOf(service, {
    admin,
    advance: (seconds) => services.map(({ clock }) => clock.advance({ seconds })),
  })
  return {
    service,
    others,
    admin,
    stranger,
    steps,
    newClip,
    /** A clip that has gone through the steps. */
    make: async (source: SourceState, names: readonly Step[]) => {
      const it = await newClip(source)
      for (const name of names) await steps[name](it)
      return it
    },
    /** Makes the variants of all clips that take a job; stills are made by the first request. */
    makeVariants: async () => {
      const { id } = await newClip()
      for (const name of ANIMATED) await isMade(service, `/f/${id}/${name}`)
    },
    /** ETag of the mp4, which is that of every clip of the same bytes. */
    mp4Etag: await etagOfMp4(service, (await newClip()).id),
    close: async () => {
      for (const each of services.toReversed()) await each.close()
    },
  }
}

/** Changes of a clip by its owner, by a moderator and by time. */
function stepsOf(service: TestService, { admin, advance }: { admin: string; advance: (seconds: number) => void }) {
  const call = async (method: string, path: string, body?: object, token = service.token) => {
    const headers = { token, ...(body && { 'content-type': 'application/json' }) }
    const { status, text } = await service.call(method, path, { headers, ...(body && { body: JSON.stringify(body) }) })
    expect([status < 300, text]).toEqual([true, text])
  }
  const showTo = (visibility: string) => (it: StagedClip) => call('PATCH', `/media/${it.id}`, { visibility })
  const decide = (decision: object) => (it: StagedClip) => call('POST', `/media/${it.id}/moderation`, decision, admin)
  return {
    public: showTo('public'),
    unlisted: showTo('unlisted'),
    private: showTo('private'),
    hidden: decide({ action: 'hide', reason: 'spam' }),
    'shown again': decide({ action: 'unhide' }),
    deleted: (it: StagedClip) => call('DELETE', `/media/${it.id}`),
    'links ended': (it: StagedClip) => call('DELETE', `/media/${it.id}/links`),
    expired: async (it: StagedClip) => {
      await call('PATCH', `/media/${it.id}`, { expires_in: '1m' })
      advance(60)
    },
    'an hour later': async () => advance(3600),
    'half an hour later': async () => advance(1800),
    'of a minute': (it: StagedClip) => call('PATCH', `/media/${it.id}`, { expires_in: '1m' }),
  }
}

/** A clip of its own, with links that were made while it was public. */
async function addClip(service: TestService, sourceId: string): Promise<StagedClip> {
  const { pool, config } = service.deps
  const texts: FormFields = [
    ['title', SECRET_TITLE],
    ['tags', 'endpoints'],
  ]
  const id = idIn(await service.ready(wideGif, texts))
  const { body } = await service.call('POST', `/media/${id}/links`, { headers: { token: service.token } })
  const { url, embed, files, oembed, expires_at: end } = body.success
  const inEmbed = /src="([^"]*)"/.exec(embed)?.[1]?.replaceAll('&amp;', '&')
  const addresses = Object.entries({ page: url, embed: inEmbed, oembed, ...files })
  const { rows } = await pool.query('update clips set source_id = $2 where id = $1 returning link_salt', [id, sourceId])
  // The answer does not list them: they exist later than the others.
  const link = createLink(
    config.encryptionKey,
    { id, linkSalt: rows[0].link_salt },
    { target: 'page', expiresAt: new Date(end) },
  )
  const ofExtras = (['webp', 'av1'] satisfies LinkTarget[]).map((target) => [target, link.queryOf(target) ?? ''])
  return {
    id,
    links: Object.fromEntries([
      ...addresses.map(([target, url]) => [target, new URL(String(url)).search]),
      ...ofExtras,
    ]),
  }
}

/** Makes the clip once, and rows of sources that are not as far or failed. */
async function makeSources(service: TestService): Promise<Record<SourceState, string>> {
  const { pool } = service.deps
  const id = idIn(await service.ready(wideGif))
  const { rows } = await pool.query('select source_id from clips where id = $1', [id])
  const ready: string = rows[0].source_id
  await addExtras(service, ready)
  const copyAs = async (changes: object): Promise<string> => {
    const copy = { id: crypto.randomUUID(), sha256: `\\x${crypto.randomUUID().replaceAll('-', '').repeat(2)}` }
    await pool.query(
      'insert into sources select (jsonb_populate_record(whole, $2)).* from sources whole where id = $1',
      [ready, { clip_count: 1000, extras: '{}', ...copy, ...changes }],
    )
    return copy.id
  }
  const processing = await copyAs({ state: 'processing', progress: 0.5, has_first_files: true, finished_at: null })
  await pool.query(
    `insert into renditions select $2, kind, sha256, bytes, width, height, copied from renditions
     where source_id = $1 and kind in ('jpg', 'mp4')`,
    [ready, processing],
  )
  return { ready, processing, failed: await copyAs({ state: 'failed', error_code: 'corrupt_media' }) }
}

/** `expect.poll` is for tests alone. */
const isMade = (service: TestService, path: string) =>
  vi.waitFor(async () => expect((await service.get(path)).status).not.toBe(202), { timeout: 60_000, interval: 20 })

/** Extras with the bytes of other files: encoders of AV1 are missing in many builds, and no endpoint looks inside. */
async function addExtras({ deps, blobsDir }: TestService, sourceId: string): Promise<void> {
  for (const [extra, like] of [
    ['webp', 'jpg'],
    ['av1', 'mp4'],
  ] as const) {
    const { rows } = await deps.pool.query(
      `with file as (select * from renditions where source_id = $1 and kind = $3),
         blob as (insert into blobs (sha256, extension, bytes, reference_count) select sha256, $2, bytes, 1 from file)
       insert into renditions select source_id, $2, sha256, bytes, width, height, copied from file
       returning encode(sha256, 'hex') as sha256`,
      [sourceId, extra, like],
    )
    const pathOf = (extension: string) => join(blobsDir, blobKey({ sha256: rows[0].sha256, extension }))
    await copyFile(pathOf(like), pathOf(extra))
  }
  await deps.pool.query(`update sources set extras = '{webp,av1}' where id = $1`, [sourceId])
}

const etagOfMp4 = async (service: TestService, id: string) =>
  (await service.get(`/f/${id}.mp4`)).headers.get('etag') ?? ''
