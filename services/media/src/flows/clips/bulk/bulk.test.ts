// One act on many clips: each is changed or refused as by a request of its own.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStage, type Stage, UNKNOWN_ID } from '../../../../test/endpoints/stage.ts'
import { allStates } from '../../../../test/endpoints/states.ts'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { addClips } from '../testing/many-clips.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_UPLOAD_AUTH: 'optional' })
})
afterAll(() => service.close())

const bulk = (body: object, token = service.token, headers: Record<string, string> = {}, on = service) =>
  on.call('POST', '/media/bulk', {
    headers: { token, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
const details = async (id: string, token = service.token) => (await service.get(`/media/${id}`, { token })).body.success
const allOk = (ids: string[]) => ids.map((id) => ({ id, ok: true }))

test('deletes up to 500 clips, whose addresses answer 410 at once, and frees their storage', async () => {
  const { token, id: tokenId } = await service.newToken()
  const ids = await addClips(service, 500, { token })
  expect((await service.get(`/gif/${ids[499]}`)).status).toBe(200)
  const { status, body } = await bulk({ ids, action: 'delete' }, token)
  expect([status, body.success.results]).toEqual([200, allOk(ids)])
  expect((await service.get(`/gif/${ids[499]}`)).status).toBe(410)
  const { rows } = await service.deps.pool.query(
    `select (select count(*)::int from clips where token_id = $1 and deleted_at is null) as left,
       (select bytes from token_storage where token_id = $1) as stored,
       (select count(*)::int from clip_search where token_id = $1) as listed,
       (select count(*)::int from sources where clip_count <> (select count(*) from clips where source_id = sources.id)) as wrong`,
    [tokenId],
  )
  expect(rows).toEqual([{ left: 0, stored: 0, listed: 0, wrong: 0 }])
})

test('tags and untags whatever other tags a clip has; the first spelling of a tag stays', async () => {
  const ids = await addClips(service, 3, { tags: ['cats'] })
  const tagsNow = () => Promise.all(ids.map(async (id) => (await details(id)).tags))
  expect((await bulk({ ids, action: 'tag', tags: ['Funny', 'CATS', ' funny '] })).body.success.results).toEqual(
    allOk(ids),
  )
  expect(await tagsNow()).toEqual(ids.map(() => ['cats', 'Funny']))
  await bulk({ ids: ids.slice(1), action: 'untag', tags: ['FUNNY', 'other'] })
  expect(await tagsNow()).toEqual([['cats', 'Funny'], ['cats'], ['cats']])
  const { body } = await service.get('/media?tag=funny', { token: service.token })
  expect(body.success.items.map(({ id }: { id: string }) => id)).toEqual([ids[0]])
})

test('sets visibility, nsfw and lifetime, each with the rules of a single request', async () => {
  const ids = await addClips(service, 2)
  const shown = async () => {
    const { visibility, nsfw, expires_at: end, sliding } = await details(ids[1] ?? '')
    return { visibility, nsfw, ends: end !== null, sliding }
  }
  expect(await shown()).toEqual({ visibility: 'public', nsfw: false, ends: false, sliding: false })
  for (const [action, members, now] of [
    ['visibility', { visibility: 'private' }, { visibility: 'private' }],
    ['nsfw', { nsfw: true }, { nsfw: true }],
    ['lifetime', { expires_in: '1h', sliding: true }, { ends: true, sliding: true }],
    ['lifetime', { sliding: false }, { ends: true, sliding: false }],
    ['lifetime', { expires_in: 'never' }, { ends: false }],
    ['lifetime', { expires_at: '2029-01-31T12:00:00Z' }, { ends: true }],
    ['lifetime', { expires_at: null }, { ends: false }],
    ['nsfw', { nsfw: false }, { nsfw: false }],
  ] as const) {
    const answer = await bulk({ ids, action, ...members })
    expect([answer.status, answer.body.success?.results], action).toEqual([200, allOk(ids)])
    expect(await shown(), JSON.stringify(members)).toMatchObject(now)
  }
  expect((await service.get(`/f/${ids[0]}.mp4`)).status).toBe(404)
})

test('results are in the order of the ids, each once; a clip that is refused keeps none of the others from the change', async () => {
  const [one = '', two = '', full = ''] = await addClips(service, 3)
  const tags = Array.from({ length: 30 }, (_, n) => `t${n}`)
  await bulk({ ids: [full], action: 'tag', tags })
  await service.call('DELETE', `/media/${two}`, { headers: { token: service.token } })
  const [foreign = ''] = await addClips(service, 1, { token: (await service.newToken()).token })
  const { status, body } = await bulk({
    ids: [two, full, one, foreign, one, 'no id', UNKNOWN_ID],
    action: 'tag',
    tags: ['more'],
  })
  const notFound = { ok: false, code: 'not_found', message: expect.any(String) }
  expect([status, body.success.results]).toEqual([
    200,
    [
      { id: two, ok: false, code: 'gone', message: expect.any(String) },
      { id: full, ok: false, code: 'invalid_field', message: 'tags must be at most 30.' },
      { id: one, ok: true },
      { id: foreign, ...notFound },
      { id: 'no id', ...notFound },
      { id: UNKNOWN_ID, ...notFound },
    ],
  ])
  expect((await details(one)).tags).toEqual(['more'])
})

test('a decision of the operator stays: a clip that it marked as nsfw is not unmarked', async () => {
  const [id = ''] = await addClips(service, 1)
  await service.deps.pool.query('update clips set nsfw = true, nsfw_forced = true where id = $1', [id])
  await bulk({ ids: [id], action: 'nsfw', nsfw: false })
  expect((await details(id)).nsfw).toBe(true)
})

test('an admin acts on clips of any token, by the rules of each, and the log has an entry for every one', async () => {
  const admin = await service.newToken({ scopes: ['admin'] })
  const ids = await addClips(service, 2)
  expect((await bulk({ ids, action: 'visibility', visibility: 'unlisted' }, admin.token)).body.success.results).toEqual(
    allOk(ids),
  )
  await bulk({ ids, action: 'delete' }, admin.token)
  const { rows } = await service.deps.pool.query(
    'select action, target, token_id, details from audit_entries where target = any($1) order by created_at, target',
    [ids],
  )
  expect(rows.map(({ action, target }) => `${action} ${target}`).toSorted()).toEqual(
    ids.flatMap((id) => [`clip_changed ${id}`, `clip_deleted ${id}`]).toSorted(),
  )
  expect(rows[0]).toMatchObject({ token_id: admin.id, details: { fields: ['visibility'] } })
})

test('a clip without a token keeps its rules when an admin changes it', async () => {
  const admin = await service.newToken({ scopes: ['admin'] })
  const [id = ''] = await addClips(service, 1)
  await service.deps.pool.query('update clips set token_id = null where id = $1', [id])
  const { body } = await bulk({ ids: [id], action: 'visibility', visibility: 'private' }, admin.token)
  expect(body.success.results).toEqual([
    { id, ok: false, code: 'invalid_field', message: 'visibility can only be private with a token.' },
  ])
})

describe('a request is refused as a whole', () => {
  test.for([
    [
      'more than 500 clips',
      { ids: Array.from({ length: 501 }, (_, n) => `A${String(n).padStart(7, '0')}`), action: 'delete' },
      422,
      'bulk_too_large',
    ],
    ['no clip', { ids: [], action: 'delete' }, 422, 'invalid_field'],
    ['an unknown action', { ids: [UNKNOWN_ID], action: 'explode' }, 422, 'invalid_field'],
    ['no tags', { ids: [UNKNOWN_ID], action: 'tag' }, 422, 'invalid_field'],
    ['empty tags', { ids: [UNKNOWN_ID], action: 'untag', tags: [' '] }, 422, 'invalid_field'],
    [
      'a visibility that is none',
      { ids: [UNKNOWN_ID], action: 'visibility', visibility: 'secret' },
      422,
      'invalid_field',
    ],
    ['a lifetime of a second', { ids: [UNKNOWN_ID], action: 'lifetime', expires_in: 1 }, 422, 'invalid_field'],
    [
      'two ends of a lifetime',
      { ids: [UNKNOWN_ID], action: 'lifetime', expires_in: '1h', expires_at: '2029-01-31T12:00:00Z' },
      422,
      'invalid_field',
    ],
    [
      'a member of another action',
      { ids: [UNKNOWN_ID], action: 'nsfw', nsfw: true, tags: ['a'] },
      422,
      'invalid_field',
    ],
    ['a text instead of ids', { ids: 'all', action: 'delete' }, 422, 'invalid_field'],
  ] as const)('for %s', async ([, body, status, code]) => {
    const answer = await bulk(body)
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  })

  test('without the scope of its action', async () => {
    const [id = ''] = await addClips(service, 1)
    const asScope = async (scope: 'read' | 'write' | 'delete', action: object) => {
      const { token } = await service.newToken({ scopes: [scope] })
      const { status, body } = await bulk({ ids: [id], ...action }, token)
      return [status, body.error?.details ?? body.success.results[0].code]
    }
    const [tagging, deleting] = [{ action: 'tag', tags: ['a'] }, { action: 'delete' }]
    expect(await asScope('read', tagging)).toEqual([403, { scope: 'write' }])
    expect(await asScope('write', deleting)).toEqual([403, { scope: 'delete' }])
    expect(await asScope('delete', tagging)).toEqual([403, { scope: 'write' }])
    expect(await asScope('delete', deleting)).toEqual([200, 'not_found'])
    expect((await bulk({ ids: [id], action: 'delete' }, 'mh_unknown')).status).toBe(401)
  })
})

test('each fifty clips count as one call, and one too many changes nothing', async () => {
  const { token } = await service.newToken({ limits: { read: 12 } })
  const [id = ''] = await addClips(service, 1, { token })
  // The deletions of helpers count, too.
  await service.deps.pool.query('delete from rate_limits')
  const ids = [id, ...Array.from({ length: 500 }, (_, n) => `A${String(n).padStart(7, '0')}`)]
  const left = async (count: number) =>
    (await bulk({ ids: ids.slice(0, count), action: 'tag', tags: ['x'] }, token)).headers.get('ratelimit-remaining')
  expect([await left(50), await left(51), await left(1)]).toEqual(['11', '9', '8'])
  const { status, body } = await bulk({ ids: ids.slice(0, 500), action: 'delete' }, token)
  expect([status, body.error?.code]).toEqual([429, 'rate_limited'])
  const { rows } = await service.deps.pool.query('select deleted_at from clips where id = $1', [id])
  expect(rows).toEqual([{ deleted_at: null }])
})

describe('a key', () => {
  test('makes a repetition answer what was answered, and change nothing', async () => {
    const ids = await addClips(service, 60)
    const key = { 'idempotency-key': 'once' }
    const first = await bulk({ ids, action: 'delete' }, service.token, key)
    const again = await bulk({ ids, action: 'delete' }, service.token, key)
    expect(first.body.success.results).toEqual(allOk(ids))
    expect([again.status, again.body]).toEqual([200, first.body])
    expect([first, again].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([null, 'true'])
  })

  test('has codes stored, not ids and messages, and no id that no clip can have; a repetition is the same text', async () => {
    const { token, id: tokenId } = await service.newToken()
    const ids = await addClips(service, 2, { token })
    await bulk({ ids: ids.slice(1), action: 'tag', tags: Array.from({ length: 30 }, (_, n) => `t${n}`) }, token)
    const unknown = Array.from({ length: 60 }, (_, n) => `A${String(n).padStart(7, '0')}`)
    const wrong = Array.from({ length: 400 }, (_, n) => String(n).padStart(64, '-'))
    const body = { ids: [...wrong.slice(1), ...unknown, ...ids, ...wrong.slice(0, 1)], action: 'tag', tags: ['more'] }
    const ask = () => bulk(body, token, { 'idempotency-key': 'small' })
    const [first, again] = [await ask(), await ask()]
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([first.text, 'true'])
    const codes = first.body.success.results.map(({ code }: { code?: string }) => code ?? 'ok')
    const notFound = (some: string[]) => some.map(() => 'not_found')
    expect(codes).toEqual([...notFound(wrong.slice(1)), ...notFound(unknown), 'ok', 'invalid_field', 'not_found'])
    const { rows } = await service.deps.pool.query(
      'select length(answer::text) as length from idempotency_keys where token_id = $1',
      [tokenId],
    )
    expect(rows).toHaveLength(2)
    for (const { length } of rows) expect(length).toBeLessThan(400)
    const onlyWrong = await bulk({ ids: wrong, action: 'delete' }, token, { 'idempotency-key': 'wrong' })
    expect([onlyWrong.status, onlyWrong.headers.get('idempotency-replayed')]).toEqual([200, null])
  })

  test('of another request is refused', async () => {
    const ids = await addClips(service, 1)
    const key = { 'idempotency-key': 'taken' }
    await bulk({ ids, action: 'tag', tags: ['a'] }, service.token, key)
    const { status, body } = await bulk({ ids, action: 'tag', tags: ['b'] }, service.token, key)
    expect([status, body.error.code]).toEqual([409, 'idempotency_conflict'])
    expect((await details(ids[0] ?? '')).tags).toEqual(['a'])
  })

  test('is that of one token', async () => {
    const key = { 'idempotency-key': 'shared' }
    const { token } = await service.newToken()
    for (const owner of [service.token, token]) {
      const ids = await addClips(service, 1, { token: owner })
      expect((await bulk({ ids, action: 'delete' }, owner, key)).body.success.results).toEqual(allOk(ids))
    }
  })
})

describe('in every state', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage()
  })
  afterAll(() => stage.close())
  const states = [...new Map(allStates.toReversed().map((state) => [`${state.source} ${state.steps}`, state])).values()]
  const actions = [
    { action: 'tag', tags: ['bulk'] },
    { action: 'untag', tags: ['endpoints'] },
    { action: 'visibility', visibility: 'public' },
    { action: 'nsfw', nsfw: true },
    { action: 'lifetime', expires_in: '1h' },
    { action: 'delete' },
  ]

  test('a clip is unknown to strangers, gone or changed for its owner', async () => {
    const staged = []
    for (const { source, name, steps } of states)
      staged.push({ what: `${source}, ${name}`, steps, ...(await stage.make(source, steps)) })
    const ids = staged.map(({ id }) => id)
    const rowsOf = async () =>
      (await stage.service.deps.pool.query('select * from clips where id = any($1) order by id', [ids])).rows
    const before = await rowsOf()
    for (const act of actions) {
      const { body } = await bulk({ ids, ...act }, stage.stranger, {}, stage.service)
      expect(body.success.results).toEqual(
        ids.map((id) => ({ id, ok: false, code: 'not_found', message: 'There is nothing at this address.' })),
      )
    }
    expect(await rowsOf()).toEqual(before)
    for (const act of actions) {
      const { body } = await bulk({ ids, ...act }, stage.service.token, {}, stage.service)
      const outcomes = staged.map(({ what, steps }, n) => [what, body.success.results[n].code ?? 'ok', steps])
      const expected = staged.map(({ what, steps }) => [
        what,
        // Steps of time end the lifetimes of all clips that had one.
        steps.includes('deleted') || steps.includes('expired') ? 'gone' : 'ok',
        steps,
      ])
      expect(outcomes, act.action).toEqual(expected)
    }
  })
})
