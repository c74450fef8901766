import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { dereferenced } from '@services/common/testing/http/dereferenced'
import { HOSTILE_SEED, hostileRuns, INNARDS } from '@services/common/testing/http/hostile-run'
import { HOSTILE_BODIES, HOSTILE_TEXTS } from '@services/common/testing/http/hostile-values'
import { type Random, randomFrom } from '@services/common/testing/seeded-random'
import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signVariant } from '../src/flows/files/variants/signature.ts'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService } from './service.ts'

/** Requests to each endpoint; test:fuzz makes a thousand. */
const RUNS = hostileRuns(15)

interface JsonSchema {
  properties?: Record<string, unknown>
  items?: JsonSchema
}
type Content = { content?: Record<string, { schema: JsonSchema }> }
interface Endpoint {
  method: string
  path: string
  parameters?: { in: 'path' | 'query' | 'header'; name: string }[]
  requestBody?: Content
  responses: Record<string, Content>
}

const VARIANT_KEY = 'a key of this test alone'

let service: TestService
let endpoints: Endpoint[]
let callers: Record<string, string>
/** Values that get past the first checks, by the name of the field or parameter. */
let plausible: Record<string, () => unknown>
/** Which endpoints did what some request asked. */
const reached = new Set<string>()

const picture = gif(24, 16, [{ delay: 10 }])
const files = [picture, picture.subarray(0, 30), Buffer.from('no clip'), Buffer.alloc(0)]
let clip = ''

beforeAll(async () => {
  service = await startTestService({
    MEDIA_RATE_LIMIT_READ: '1000000/1m',
    MEDIA_RATE_LIMIT_ANONYMOUS: '1000000/1h',
    MEDIA_UPLOAD_AUTH: 'optional',
    MEDIA_PARALLEL_PER_TOKEN: '100',
    MEDIA_VARIANT_KEY: VARIANT_KEY,
  })
  const { body } = await service.get('/openapi.json')
  // The stream of all clips has no end.
  const { '/media/events': _, ...paths } = dereferenced(body).paths as Record<string, Record<string, Endpoint>>
  endpoints = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  )
  const owner = service.token
  const admin = (await service.newToken({ scopes: ['admin'] })).token
  callers = { owner, admin, reader: (await service.newToken({ scopes: ['read'] })).token, garbage: 'mh_garbage' }
  clip = idIn(await service.upload(picture))
})
afterAll(() => service.close())

test(
  'whatever is sent to any endpoint, the answer is a documented one and tells nothing of the inside',
  async () => {
    const random = randomFrom(HOSTILE_SEED)
    const problems: string[] = []
    for (const endpoint of endpoints) {
      const check = checkOf(endpoint)
      for (let run = 0; run < RUNS; run++) {
        await makeReady(endpoint)
        const request = run === 0 ? rightRequestTo(endpoint) : requestTo(endpoint, random)
        const { status, text, headers } = await service.call(request.method, request.path, request)
        if (status < 400) reached.add(`${endpoint.method} ${endpoint.path}`)
        const isJson = headers.get('content-type')?.startsWith('application/json') ?? false
        const problem = check({ status, body: text, isJson })
        if (problem) problems.push(`${JSON.stringify(request).slice(0, 1_000)}\n${problem}`)
      }
    }
    expect(problems.slice(0, 10).join('\n\n')).toBe('')
  },
  120_000 + RUNS * 2_000,
)

test('each endpoint also did what it was asked, so that more than its first check was seen', () => {
  expect(endpoints.length).toBeGreaterThan(20)
  const missed = endpoints.map(({ method, path }) => `${method} ${path}`).filter((name) => !reached.has(name))
  // Other tests cover sessions, which are for our own pages, and imports: their source here is no server.
  expect(missed).toEqual(['POST /session', 'DELETE /session', 'POST /media/import', 'GET /media/import'])
})

/** A job that was given up, as pg-boss writes it. */
async function deadLetter(): Promise<string> {
  const insert = `insert into media_queue.job (name, source_name, data, source_retry_count)
    values ('extras.dead', 'extras', '{}', 0) returning id`
  return (await service.deps.pool.query(insert)).rows[0].id
}

/** Requests delete and revoke; the next one finds something again. */
async function makeReady({ path }: Endpoint): Promise<void> {
  if (!path.includes('{id}') && !['/oembed', '/media/archive'].includes(path)) return
  const { pool } = service.deps
  const { rows } = await pool.query('select from clips where id = $1 and deleted_at is null', [clip])
  if (rows.length === 0) clip = idIn(await service.upload(picture))
  await pool.query('update clips set hidden_at = null, hidden_reason = null where id = $1', [clip])
  const find = `select webhook_deliveries.id, webhook_id from webhook_deliveries join webhooks on webhooks.id = webhook_id
    join clips on clips.token_id = webhooks.token_id where clips.id = $1 limit 1`
  let [delivery] = (await pool.query(find, [clip])).rows
  if (!delivery) {
    await pool.query(
      `with hook as (
         insert into webhooks (id, token_id, url, events, secret, created_at)
         select gen_random_uuid(), token_id, 'http://127.0.0.1:1/', array['media.ready'], 'whsec_', now() from clips where id = $1
         returning id)
       insert into webhook_deliveries (id, webhook_id, type, payload, state, give_up_at, created_at)
       select gen_random_uuid(), id, 'media.ready', '{}', 'delivered', now(), now() from hook`,
      [clip],
    )
    delivery = (await pool.query(find, [clip])).rows[0]
  }
  if (/^\/(a|albums)\//.test(path)) {
    const insert = `insert into albums (id, token_id, title, visibility, created_at, updated_at)
      select id, token_id, 'Trip', 'public', now(), now() from clips where id = $1 on conflict do nothing`
    await pool.query(insert, [clip])
    const item = `insert into album_items (album_id, clip_id, position, added_at)
      values ($1, $1, 1, now()) on conflict do nothing`
    if (path.endsWith('/items/{clip}')) await pool.query(item, [clip])
  }
  const report = randomUUID()
  if (path === '/reports/{id}') {
    const insert = "insert into reports (id, clip_id, reason, created_at) values ($1, $2, 'spam', now())"
    await pool.query(insert, [report, clip])
  }
  const victim = path.startsWith('/tokens/{id}')
    ? (await service.newToken()).id
    : path.startsWith('/queue/dead')
      ? await deadLetter()
      : path === '/tus/{id}'
        ? await beginUpload()
        : ''
  plausible = {
    variant: () => 'w160.jpg',
    options: () => 'w:20',
    file: () => `${clip}.jpg`,
    signature: () => signVariant(VARIANT_KEY, `/w:20/${clip}.jpg`),
    id: () => {
      if (path.startsWith('/reports')) return report
      return path.startsWith('/webhooks') ? delivery.webhook_id : victim || clip
    },
    ids: () => (path.startsWith('/albums') ? [clip] : clip),
    clip: () => clip,
    delivery: () => delivery.id,
    url: () => (path.startsWith('/webhooks') ? undefined : `https://media.example/gif/${clip}`),
  }
}

/** The upload that the request before was about, which counts among those that the token has begun. */
let begun = ''

async function beginUpload(): Promise<string> {
  const headers = { token: service.token, 'tus-resumable': '1.0.0' }
  if (begun) await service.call('DELETE', `/tus/${begun}`, { headers })
  const answer = await service.call('POST', '/tus', { headers: { ...headers, 'upload-length': `${picture.length}` } })
  begun = answer.headers.get('location')?.split('/').at(-1) ?? ''
  return begun
}

/** Without these nothing is done under /tus. */
const NEEDED = ['tus-resumable', 'upload-length', 'upload-offset']
const ABOUT_FILES = ['range', 'if-match']
const ANYWHERE = ['accept', 'if-none-match', 'if-modified-since', 'content-type', 'x-delete-token']
const PIECE = 'application/offset+octet-stream'
const FORM = 'application/x-www-form-urlencoded'

const known: Record<string, readonly unknown[]> = {
  kind: ['gif', 'mp4', 'file', 'exe'],
  id: ['00000000'],
  ids: [['00000000'], []],
  day: ['2026-01-01'],
  count: [1, 2],
  url: ['https://example.com/hook', 'http://127.0.0.1:1/', 'https://media.example/gif/00000000'],
  source: ['http://127.0.0.1:1/', 'http://10.0.0.1/clip.mp4'],
  title: ['Hello', null],
  tags: [['a', 'b'], ['a'], null],
  nsfw: [true, false, null],
  attribution: [{ site: 'reddit', user: 'ada' }, { site: 'https://example.com/' }, null],
  attribution_site: ['twitter'],
  attribution_url: ['', 'https://example.com/a'],
  visibility: ['public', 'unlisted', 'private'],
  expires_at: [''],
  sliding: ['false', ''],
  start: ['0', '0:00.000'],
  duration: [''],
  end: [''],
  crop: ['', '1:1', '0,0,16,16'],
  speed: ['1', '0.5'],
  mute: ['true'],
  poster_at: ['0'],
  caption: ['', 'Hi'],
  caption_position: ['', 'top'],
  state: ['ready', 'failed', 'open', 'closed'],
  reason: ['spam', 'other'],
  text: ['Mine', null],
  email: ['me@example.com', ''],
  // Not `block`: no further file of this test would be accepted.
  action: ['nsfw', 'hide'],
  note: ['By letter', null],
  limit: ['1', '100'],
  q: ['hello', 'a & !b | (c'],
  sort: ['created', 'title', 'bytes', 'duration', 'views'],
  order: ['asc', 'desc'],
  from: ['2020-01-01', '2020-01-01T00:00:00+01:00'],
  to: ['2120-01-01', '2120-01-01T00:00:00Z'],
  tag: ['a'],
  token: ['none', '11111111-1111-4111-8111-111111111111'],
  cursor: [Buffer.from('1.00000000').toString('base64url'), Buffer.from('99999999999999.a').toString('base64url')],
  name: ['ci'],
  scopes: [['read'], ['read', 'read']],
  limits: [{ read: 5 }, {}],
  expires_in: [60, '1h'],
  events: [['media.ready']],
  secret: [`whsec_${Buffer.alloc(24).toString('base64')}`],
  format: ['json', 'xml', 'html'],
  maxwidth: ['100', '-1'],
  download: ['1'],
  include: ['details'],
  range: ['bytes=0-0', 'bytes=99999999-'],
  'if-match': ['*', '"x"'],
  prefer: ['respond-async', 'wait=0', 'wait=99999999999'],
  'idempotency-key': ['a', 'x'.repeat(300)],
  'x-delete-token': ['md_0'],
  'tus-resumable': ['1.0.0'],
  'upload-length': ['10', '100'],
  'upload-defer-length': ['1'],
  'upload-metadata': ['title SGVsbG8=', 'nsfw'],
  'upload-offset': ['0', '0', '5'],
}

/** Bodies of endpoints that chance rarely sends what they take. */
const RIGHT_BODIES: Record<string, () => object> = {
  'POST /media/{id}/copies': () => ({}),
  'POST /media/bulk': () => ({ ids: [clip], action: 'nsfw', nsfw: true }),
  'PUT /albums/{id}/items': () => ({ ids: [clip] }),
  'POST /views': () => [{ id: clip, kind: 'page', day: '2026-01-01', count: 1 }],
  'POST /media/{id}/moderation': () => ({ action: 'nsfw' }),
}

/** A request that nothing is wrong with, as far as the plausible values are enough for one. */
function rightRequestTo({ method, path }: Endpoint) {
  const body = RIGHT_BODIES[`${method} ${path}`]?.()
  const token = callers[/^\/(tus|webhooks)\//.test(path) ? 'owner' : 'admin'] as string
  return {
    method,
    path: path.replaceAll(/\{(\w+)\}/g, (_all, name) => encodeURIComponent(String(plausible?.[name]?.() ?? ' '))),
    headers: { token, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  }
}

function requestTo({ method, path, parameters = [], requestBody }: Endpoint, random: Random) {
  const named = (place: string) =>
    parameters.filter((each) => each.in === place).map(({ name }) => (place === 'header' ? name.toLowerCase() : name))
  const text = (name: string) => String(valueFor(name, random, HOSTILE_TEXTS) ?? '')
  const inUrl = (value: string) => encodeURIComponent(value.toWellFormed())
  // An empty one would be another endpoint's address.
  const place = path.replaceAll(/\{(\w+)\}/g, (_all, name) => inUrl(text(name) || ' '))
  const names = [...named('query'), 'unknown'].filter(() => random.chance(0.4))
  const query = names.map((name) => `${name}=${inUrl(text(name))}`).join('&')
  const headers: Record<string, string> = {}
  for (const name of new Set([...named('header'), ...ANYWHERE, ...ABOUT_FILES])) {
    const chance = NEEDED.includes(name) ? 0.95 : ABOUT_FILES.includes(name) ? 0.25 : 0.08
    if (random.chance(chance)) headers[name] = toHeader(text(name))
  }
  // Uploads that were begun, and webhooks, are those of their token alone.
  const usual = /^\/(tus|webhooks)\/\{/.test(path) ? ['owner'] : ['owner', 'admin', 'admin']
  const caller = random.chance(0.75) ? random.pick(usual) : random.pick(Object.keys(callers))
  if (random.chance(0.95)) headers.token = callers[caller] as string
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const body = content && bodyOf(type as string, content.schema, random)
  return {
    method,
    path: `${place}?${query}`,
    headers: { ...(body && { 'content-type': body.type }), ...headers },
    ...(body && { body: typeof body.payload === 'string' ? body.payload : new Uint8Array(body.payload) }),
  }
}

function valueFor(name: string, random: Random, wrong: readonly unknown[]): unknown {
  const right = (random.chance(0.85) ? plausible?.[name]?.() : undefined) ?? (known[name] && random.pick(known[name]))
  const value = right !== undefined && random.chance(0.85) ? right : random.pick(wrong)
  return name === 'source' ? withoutNetwork(value) : value
}

/** A name would be looked up. */
function withoutNetwork(source: unknown): unknown {
  const host = URL.parse(String(source))?.hostname.replace(/^\[|\]$/g, '')
  return host && !isIP(host) ? 'http://127.0.0.1:1/' : source
}

const WRONG_VALUES: unknown[] = [
  ...[...HOSTILE_TEXTS, 0, -1, 1.5, 1e308, 2 ** 53 + 2, true, null, [], {}, ['\0'], [[]], { a: { b: [] } }],
  ...[Array(100).fill('x'), JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`), { ['__proto__']: 1, site: 1 }],
]

function bodyOf(type: string, schema: JsonSchema, random: Random): { type: string; payload: string | Buffer } {
  const names = Object.keys((schema.items ?? schema).properties ?? {})
  if (random.chance(0.1)) return { type, payload: random.pick(HOSTILE_BODIES) }
  if (type === PIECE) return { type, payload: random.pick([picture, picture.subarray(0, 10)]) }
  // Among many fields one is always wrong.
  const chance = schema.items ? 0.95 : Math.min(0.6, 6 / names.length)
  const members = names.filter((name) => ['source', 'file', 'action'].includes(name) || random.chance(chance))
  const wrong = random.chance(0.4) ? random.pick(names) : undefined
  const value = (name: string) =>
    name === wrong ? withoutNetwork(random.pick(WRONG_VALUES)) : random.pick(known[name] ?? ['text'])
  if (type === 'application/json') {
    const body = Object.fromEntries(members.map((name) => [name, value(name)]))
    return { type, payload: JSON.stringify(schema.items ? [body] : body) }
  }
  if (type === FORM) {
    return {
      type,
      payload: new URLSearchParams(Object.fromEntries(members.map((name) => [name, String(value(name))]))).toString(),
    }
  }
  const parts = members.map((name) => {
    const file = random.chance(0.7) ? picture : random.pick(files)
    const content = name === 'file' ? file : Buffer.from(String(value(name)).toWellFormed())
    const disposition = `form-data; name="${name}"${name === 'file' ? '; filename="a.gif"' : ''}`
    return Buffer.concat([
      Buffer.from(`--b\r\nContent-Disposition: ${disposition}\r\n\r\n`),
      content,
      Buffer.from('\r\n'),
    ])
  })
  return { type: 'multipart/form-data; boundary=b', payload: Buffer.concat([...parts, Buffer.from('--b--\r\n')]) }
}

/** Reduces a text to the characters that a client can send in a header. */
const toHeader = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, '').slice(0, 8_000)

/** Says what the document does not promise; undefined where all is well. */
function checkOf({ method, responses }: Endpoint) {
  const validators = new Map(
    Object.entries(responses).map(([status, { content }]) => {
      const schema = content?.['application/json']?.schema
      return [Number(status), schema && Compile(schema)]
    }),
  )
  return ({ status, body, isJson }: { status: number; body: string; isJson: boolean }): string | undefined => {
    const shown = `${status} ${body.slice(0, 500)}`
    if (status >= 500 && status !== 501 && status !== 507) return `failed: ${shown}`
    // Files and pages have no schema; a refusal of the HTTP parser belongs to no route.
    const isFine = validators.has(status) || (status < 400 && !isJson) || status === 431
    if (!isFine && method !== 'HEAD') return `status is not documented: ${shown}`
    if (INNARDS.test(body)) return `tells of the inside: ${shown}`
    const validator = validators.get(status)
    if (!validator || method === 'HEAD') return undefined
    if (body === '' && !validator.Check(null)) return `has no body though one is documented: ${shown}`
    if (!isJson) return undefined
    const value = JSON.parse(body)
    return validator.Check(value)
      ? undefined
      : `not as documented: ${shown} ${JSON.stringify(validator.Errors(value)[0])}`
  }
}
