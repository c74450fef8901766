// Albums for tests of their pages: clips are uploads, many of them rows of one source.

import { expect } from 'vitest'
import { gif } from '../../../../../test/gif-bytes.ts'
import { type FormFields, idIn, type TestService } from '../../../../../test/service.ts'
import { albumUrls } from '../../../../core/albums/album-view.ts'
import { elementsOf } from '../../testing/markup.ts'

let frames = 0
let fills = 0

/** A ready clip of bytes that no other clip has. */
export async function addClip(service: TestService, fields: FormFields = []): Promise<string> {
  frames++
  return idIn(await service.readyAlike(gif(64, 40, [{ delay: 10 }, { delay: frames, color: 1 }]), fields))
}

async function call(service: TestService, method: string, path: string, body?: object, token = service.token) {
  const answer = await service.call(method, path, {
    headers: { token, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect([method, path, answer.status < 300, answer.text]).toEqual([method, path, true, answer.text])
  return answer
}

export type Album = { id: string; page: string; embed: string; oembed: string }

/** An album of these clips. */
export async function addAlbum(
  service: TestService,
  { clips = [], ...fields }: { clips?: readonly string[]; title?: string; description?: string; visibility?: string },
): Promise<Album> {
  const { body } = await call(service, 'POST', '/albums', { title: 'Trip', ...fields })
  const { id } = body.success
  await addItems(service, id, clips)
  return { id, ...albumUrls(id, service.deps.config.site) }
}

export async function addItems(service: TestService, id: string, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await call(service, 'POST', `/albums/${id}/items`, { ids })
}

/** A link to a private album; `embed` is the address of its player. */
export async function linkTo(service: TestService, id: string, body: object = {}) {
  const { success } = (await call(service, 'POST', `/albums/${id}/links`, body)).body
  const embed = elementsOf(success.embed)[0]?.attributes.src
  return { ...success, embed } as { page: string; embed: string; expires_at: string }
}

/** Fills an album with `count` clips of the source of `like`; returns them in order. */
export async function fillAlbum(
  service: TestService,
  { id, like, count }: { id: string; like: string; count: number },
): Promise<string[]> {
  fills++
  const copies = Array.from({ length: count }, (_, at) => `Fill${fills}${String(at).padStart(3, '0')}`)
  await service.deps.pool.query(
    `insert into clips select (jsonb_populate_record(whole, jsonb_build_object('id', copy, 'title', 'Clip ' || copy))).*
     from clips whole, unnest($2::text[]) copy where whole.id = $1`,
    [like, copies],
  )
  await addItems(service, id, copies)
  return copies
}

/** Changes of a clip in an album by its owner, by a moderator and by time. */
export const steps = {
  public: async () => {},
  unlisted: (service: TestService, clip: string) => change(service, clip, { visibility: 'unlisted' }),
  private: (service: TestService, clip: string) => change(service, clip, { visibility: 'private' }),
  sensitive: (service: TestService, clip: string) => change(service, clip, { nsfw: true }),
  hidden: (service: TestService, clip: string) => decide(service, clip, { action: 'hide', reason: 'spam' }),
  blocked: (service: TestService, clip: string) => decide(service, clip, { action: 'block', reason: 'illegal' }),
  expired: async (service: TestService, clip: string) => {
    await change(service, clip, { expires_in: '1m' })
    service.clock.advance({ seconds: 60 })
  },
  deleted: (service: TestService, clip: string) => call(service, 'DELETE', `/media/${clip}`),
  failed: (service: TestService, clip: string) =>
    setSource(service, clip, `state = 'failed', error_code = 'corrupt_media'`),
  processing: (service: TestService, clip: string) => setSource(service, clip, `state = 'processing', progress = 0.5`),
  'taken out': (service: TestService, clip: string, albums: readonly string[]) =>
    Promise.all(albums.map((id) => call(service, 'DELETE', `/albums/${id}/items/${clip}`))),
} satisfies Record<string, (service: TestService, clip: string, albums: readonly string[]) => Promise<unknown>>

export const change = (service: TestService, clip: string, changes: object) =>
  call(service, 'PATCH', `/media/${clip}`, changes)

export const changeAlbum = (service: TestService, id: string, changes: { visibility: string }) =>
  call(service, 'PATCH', `/albums/${id}`, changes)

async function decide(service: TestService, clip: string, decision: object) {
  const { token } = await service.newToken({ scopes: ['admin'] })
  return call(service, 'POST', `/media/${clip}/moderation`, decision, token)
}

const setSource = (service: TestService, clip: string, changes: string) =>
  service.deps.pool.query(`update sources set ${changes} where id = (select source_id from clips where id = $1)`, [
    clip,
  ])
