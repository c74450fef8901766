// A library with a clip in each state, for tests of its pages.
import { gif } from '../../../../../test/gif-bytes.ts'
import { idIn, type TestService } from '../../../../../test/service.ts'

/** Signs a browser in; returns the headers of its requests. */
export async function signedIn(service: TestService, token = service.token): Promise<Record<string, string>> {
  const { headers } = await service.call('POST', '/session', { headers: { 'sec-fetch-site': 'same-origin', token } })
  const cookie = headers.getSetCookie()[0]?.split(';')[0] ?? ''
  return { 'sec-fetch-site': 'same-origin', accept: 'text/html', cookie }
}

/** Two hundred characters that are written from right to left, with marks that turn the direction. */
export const HOSTILE_TITLE = `\u202e<b>"${'שלום '.repeat(50)}`.slice(0, 200)

/** Adds clips of one source in all states; returns their ids by state. */
export async function addClips(service: TestService, token = service.token) {
  const file = gif(320, 180, [{ delay: 40 }, { delay: 40, color: 0 }])
  const add = async (title: string, fields: [string, string][] = []) =>
    idIn(await service.ready(file, [['title', title], ...fields], { token }))
  const ids = {
    ready: await add('A cat jumps', [['tags', 'cat,jump']]),
    hostile: await add(HOSTILE_TITLE),
    unlisted: await add('Only with the address', [['visibility', 'unlisted']]),
    private: await add('For me alone', [
      ['visibility', 'private'],
      ['tags', 'cat'],
    ]),
    expiring: await add('Gone in a week', [['expires_in', '7d']]),
    sensitive: await add('Look away', [['nsfw', 'true']]),
    hidden: await add('Taken down'),
    deleted: await add('Deleted words'),
    expired: await add('Expired words', [['expires_in', '1h']]),
  }
  const { pool, now } = service.deps
  await pool.query(`update clips set hidden_at = now(), hidden_reason = 'spam' where id = $1`, [ids.hidden])
  await pool.query(`update clips set expires_at = $2 where id = $1`, [ids.expired, new Date(now().getTime() - 1)])
  await service.call('DELETE', `/media/${ids.deleted}`, { headers: { token } })
  const others = {
    waiting: await addIn('processing', 0),
    making: await addIn('processing', 0.4),
    failed: await addIn('failed', 0),
  }
  return { ...ids, ...others }

  /** Adds a clip whose source is in another state. */
  async function addIn(state: 'processing' | 'failed', progress: number): Promise<string> {
    const id = await add(`Clip ${state} ${progress}`)
    const source = service.deps.newId()
    const changes = { state, progress, error_code: state === 'failed' ? 'corrupt_media' : null, clip_count: 1 }
    await pool.query(
      `insert into sources select (jsonb_populate_record(sources, $2::jsonb || jsonb_build_object('sha256', sha256($3)))).*
       from sources join clips on clips.source_id = sources.id where clips.id = $1`,
      [id, JSON.stringify({ id: source, ...changes }), Buffer.from(source)],
    )
    await pool.query('update clips set source_id = $1 where id = $2', [source, id])
    return id
  }
}
