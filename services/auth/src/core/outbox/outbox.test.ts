import { SignJWT } from 'jose'
import { describe, expect } from 'vitest'
import { linkPath, SECRET, startTestService, type TestService, test } from '../../../test/service.ts'
import { deleteExpired } from '../../housekeeping.ts'
import { type NewMail, queueMessage } from './outbox.ts'

const password = 'correct horse'
const NOBODY = '11111111-1111-4111-8111-111111111111'

async function tokenOf(role: string) {
  const key = new TextEncoder().encode(SECRET)
  const token = await new SignJWT({ role }).setProtectedHeader({ alg: 'HS256' }).setExpirationTime('10y').sign(key)
  return { authorization: `Bearer ${token}` }
}

const admin = await tokenOf('service_role')

async function list(service: TestService, query = '') {
  const { status, body, headers } = await service.get(`/admin/messages${query}`, admin)
  expect([query, status]).toEqual([query, 200])
  return { messages: body.messages as Record<string, unknown>[], headers }
}

/** The only message of a new user, once it is in that state. */
async function messageOf(service: TestService, userId: string, state: string) {
  await expect.poll(async () => (await list(service, `?user_id=${userId}`)).messages[0]?.state).toBe(state)
  return (await list(service, `?user_id=${userId}`)).messages[0] as Record<string, unknown>
}

async function signUp(service: TestService, email: string): Promise<string> {
  const { status, body } = await service.post('/signup', { email, password })
  expect(status).toBe(200)
  return body.id
}

const retry = (service: TestService, id: unknown) => service.post(`/admin/messages/${id}/retry`, {}, admin)

const sealedOf = async (service: TestService, id: unknown) =>
  (
    await service.deps.db
      .selectFrom('messages')
      .select('sealed')
      .where('id', '=', id as string)
      .executeTakeFirst()
  )?.sealed

describe('a message', () => {
  test('that left is listed as sent, without its address, and its content is deleted', async ({ service }) => {
    const userId = await signUp(service, 'sent@example.com')
    const mail = await service.mailbox.waitFor('sent@example.com')
    const message = await messageOf(service, userId, 'sent')
    expect(message).toEqual({
      id: expect.any(String),
      user_id: userId,
      channel: 'mail',
      kind: 'confirmation',
      state: 'sent',
      attempts: 1,
      last_error: null,
      provider: 'smtp',
      provider_message_id: `${message.id}@site.example`,
      created_at: service.clock.now().toISOString(),
      sent_at: service.clock.now().toISOString(),
    })
    expect(mail.source).toContain(`Message-ID: <${message.provider_message_id}>`)
    expect(await sealedOf(service, message.id)).toBeNull()
  })

  test('that is refused permanently fails at once, says why without the address, and can be sent again', async ({
    service,
  }) => {
    await service.mailbox.answer(550)
    const userId = await signUp(service, 'refused@example.com')
    const failed = await messageOf(service, userId, 'failed')
    expect(failed).toMatchObject({
      attempts: 1,
      last_error: 'mail server: it refused the recipient (550)',
      sent_at: null,
    })
    expect(service.mailbox.messages({ to: 'refused@example.com' })).toEqual([])
    await service.mailbox.accept()

    // The link waited longer than its lifetime, which starts when the mail leaves.
    service.clock.advance({ seconds: 20 * 3600 })
    const answer = await retry(service, failed.id)
    expect(answer).toMatchObject({ status: 200, body: { id: failed.id, state: 'queued', attempts: 1 } })
    const { text } = await service.mailbox.waitFor('refused@example.com')
    expect((await service.get(linkPath(text))).headers.location).toContain('#access_token=')
    expect(await messageOf(service, userId, 'sent')).toMatchObject({ attempts: 2, last_error: null })
  })

  test('that an admin sends again twice at once leaves once', async ({ service }) => {
    await service.mailbox.answer(550)
    const userId = await signUp(service, 'once@example.com')
    const { id } = await messageOf(service, userId, 'failed')
    await service.mailbox.accept()
    const answers = await Promise.all([retry(service, id), retry(service, id), retry(service, id)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422, 422])
    const { body: entries } = await service.get('/admin/audit?query=action:message_retried', admin)
    expect(entries.map(({ payload }: { payload: object }) => payload)).toContainEqual(
      expect.objectContaining({
        actor_username: 'service_role',
        log_type: 'user',
        traits: { message_id: id, user_id: userId, channel: 'mail', kind: 'confirmation' },
      }),
    )
    expect(JSON.stringify(entries).split(id as string)).toHaveLength(2)
    await messageOf(service, userId, 'sent')
    expect(service.mailbox.messages({ to: 'once@example.com' })).toHaveLength(1)
  })

  test('to a server that hangs does not delay the request and is sent when the server is back', async ({ service }) => {
    await service.mailbox.hang()
    const userId = await signUp(service, 'hang@example.com')
    await service.mailbox.accept()
    await messageOf(service, userId, 'sent')
  })

  test('whose link was used meanwhile is dropped, not sent', async ({ service }) => {
    await service.mailbox.answer(550)
    const userId = await signUp(service, 'used@example.com')
    const { id } = await messageOf(service, userId, 'failed')
    await service.mailbox.accept()
    await service.deps.db.deleteFrom('one_time_tokens').where('user_id', '=', userId).execute()
    expect((await retry(service, id)).status).toBe(200)
    const dropped = await messageOf(service, userId, 'dropped')
    expect(dropped.last_error).toContain('used or replaced')
    expect(await sealedOf(service, id)).toBeNull()
    expect(service.mailbox.messages({ to: 'used@example.com' })).toEqual([])
  })

  test('that is only pretended is a row like any other, and never leaves', async ({ service }) => {
    const { userId } = await service.signedUp('pretended@example.com')
    const [confirmation] = (await list(service, `?user_id=${userId}`)).messages
    service.clock.advance({ seconds: 901 })
    const quiet = await service.with({ AUTH_MAILER_ACCOUNT_EXISTS_ENABLED: 'false' })
    await signUp(quiet, 'pretended@example.com')
    await quiet.close()
    const pretended = await messageOf(service, userId, 'dropped')
    expect(pretended).toMatchObject({ kind: 'confirmation', last_error: null, attempts: 0 })
    expect(pretended.id).not.toBe(confirmation?.id)
    expect(service.mailbox.messages({ to: 'pretended@example.com' })).toHaveLength(1)
  })

  test('is deleted with its user', async ({ service }) => {
    const userId = await signUp(service, 'gone@example.com')
    await messageOf(service, userId, 'sent')
    await service.deps.db.deleteFrom('users').where('id', '=', userId).execute()
    expect((await list(service, `?user_id=${userId}`)).messages).toEqual([])
  })

  test('exists only if its transaction commits', async ({ service }) => {
    const before = (await list(service)).headers['x-total-count']
    const attempt = service.deps.db.transaction().execute(async (trx) => {
      await queueMessage(service.deps, trx, { ...SMS, userId: null })
      throw new Error('no')
    })
    await expect(attempt).rejects.toThrow('no')
    expect((await list(service)).headers['x-total-count']).toBe(before)
  })

  test('holds neither address nor link nor code in the clear while it waits, nor does its job', async ({ service }) => {
    await service.mailbox.refuse()
    const userId = await signUp(service, 'sealed-row@example.com')
    const { rows } = await service.deps.pool.query(
      'select to_jsonb(m)::text || j.data::text as text from messages m, auth_queue.job j where user_id = $1',
      [userId],
    )
    expect(rows.length).toBeGreaterThan(0)
    for (const { text } of rows) {
      expect(text).not.toContain('sealed-row@example.com')
      expect(text).not.toContain('/verify')
    }
    await service.mailbox.accept()
    await messageOf(service, userId, 'sent')
  })
})

const SMS = {
  channel: 'sms',
  kind: 'confirmation',
  to: '4915112345678',
  variables: { code: '123456', channel: 'sms', text: 'Your code is 123456' },
  lifetimeSeconds: null,
} as const

describe('GET /admin/messages', () => {
  test('is for admins alone, and so is the retry', async ({ service }) => {
    const { auth } = await service.signedIn()
    const calls = (headers: Record<string, string>) =>
      Promise.all([
        service.get('/admin/messages', headers),
        service.post(`/admin/messages/${NOBODY}/retry`, {}, headers),
      ])
    for (const answer of await calls({}))
      expect(answer).toMatchObject({ status: 401, body: { error_code: 'no_authorization' } })
    for (const answer of [...(await calls(auth)), ...(await calls(await tokenOf('authenticated')))]) {
      expect(answer).toMatchObject({ status: 403, body: { error_code: 'not_admin' } })
    }
  })

  test('filters by user, address, state, channel and kind, newest first, in pages and by cursor', async () => {
    const service = await startTestService()
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      service.clock.advance({ seconds: 1 })
      const trx = service.deps.db.transaction()
      ids.unshift(await trx.execute((t) => queueMessage(service.deps, t, { ...SMS, userId: null })))
    }
    const userId = await signUp(service, 'listed@example.com')
    await messageOf(service, userId, 'sent')
    const idsOf = async (query: string) => (await list(service, query)).messages.map(({ id }) => id)
    expect(await idsOf('?channel=sms')).toEqual(ids)
    expect(await idsOf('?channel=sms&page=2&per_page=2')).toEqual(ids.slice(2, 4))
    expect(await idsOf('?channel=sms&state=sent')).toEqual([])
    expect(await idsOf('?state=sent')).toHaveLength(1)
    expect(await idsOf(`?user_id=${userId}`)).toHaveLength(1)
    expect(await idsOf(`?user_id=${NOBODY}`)).toEqual([])
    expect(await idsOf('?kind=confirmation&channel=sms')).toEqual(ids)
    expect(await idsOf('?kind=recovery')).toEqual([])
    expect(await idsOf('?address=Listed@Example.com')).toEqual(await idsOf(`?user_id=${userId}`))
    expect(await idsOf(`?address=listed@example.com&user_id=${NOBODY}`)).toEqual([])
    expect(await idsOf('?address=nobody@example.com')).toEqual([])
    for (const member of ['kind', 'address', 'cursor']) {
      expect((await service.get(`/admin/messages?${member}=%00`, admin)).status).toBe(400)
    }

    const walked: string[] = []
    for (let url = '/admin/messages?channel=sms&limit=2'; url; ) {
      const { body, headers } = await service.get(url, admin)
      walked.push(...body.messages.map(({ id }: { id: string }) => id))
      url = /<([^>]*)>; rel="next"/.exec(String(headers.link ?? ''))?.[1] ?? ''
    }
    expect(walked).toEqual(ids)

    const { headers } = await list(service, '?per_page=2&channel=sms&page=2')
    expect(headers['x-total-count']).toBe('5')
    expect(headers.link).toBe(
      '</admin/messages?channel=sms&page=3&per_page=2>; rel="next", </admin/messages?channel=sms&page=3&per_page=2>; rel="last"',
    )
    expect((await list(service, '?per_page=2&channel=sms&page=3')).headers.link).not.toContain('next')
    expect((await list(service, `?user_id=${NOBODY}`)).headers).toMatchObject({ 'x-total-count': '0' })
    await service.close()
  })

  test('counts ten thousand messages exactly, estimates more, and still lists later ones', async () => {
    const service = await startTestService()
    await service.deps.pool.query(`insert into messages (id, channel, kind, state, created_at, updated_at)
      select gen_random_uuid(), 'mail', 'confirmation', 'sent', now(), now() from generate_series(1, 10001)`)
    const first = await list(service, '?per_page=1000')
    expect(first.headers['x-total-count-estimated']).toBe('true')
    expect(Number(first.headers['x-total-count'])).toBeGreaterThan(10_000)
    const last = await list(service, '?per_page=1000&page=11')
    expect([last.messages.length, last.headers['x-total-count']]).toEqual([1, '10001'])
    expect(last.headers).not.toHaveProperty('x-total-count-estimated')
    await service.close()
  })

  test('takes page 0 for the first one', async ({ service }) => {
    const answers = [await list(service, '?page=0&per_page=1'), await list(service, '?page=1&per_page=1')]
    expect(answers[0]?.messages).toEqual(answers[1]?.messages)
  })

  test.for([
    'page=-1',
    'page=x',
    'page=1e9',
    'page=99999999999999999999',
    'per_page=0',
    'user_id=x',
    'state=lost',
    'channel=pigeon',
  ])('refuses %s with 400', async (query, { service }) => {
    const { status, body } = await service.get(`/admin/messages?${query}`, admin)
    expect([status, body.error_code]).toEqual([400, 'validation_failed'])
  })
})

describe('POST /admin/messages/:id/retry', () => {
  test('is 404 for an unknown message and 422 for one that has not failed', async ({ service }) => {
    for (const id of [NOBODY, 'x', '%00', "1' or true"]) {
      expect(await retry(service, id)).toMatchObject({ status: 404, body: { error_code: 'not_found' } })
    }
    const userId = await signUp(service, 'unfailed@example.com')
    const { id } = await messageOf(service, userId, 'sent')
    expect(await retry(service, id)).toMatchObject({ status: 422, body: { error_code: 'validation_failed' } })
  })
})

test('housekeeping keeps sent messages 7 days and failed ones 30, and fails those whose job is lost', async () => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const trx = () => service.deps.db.transaction()
  const add = (state: 'sent' | 'failed' | 'dropped' | 'queued') =>
    trx().execute(async (t) => {
      const id = await queueMessage(service.deps, t, { ...SMS, userId: null })
      await t.updateTable('messages').set({ state }).where('id', '=', id).execute()
    })
  for (const state of ['sent', 'failed', 'dropped', 'queued'] as const) await add(state)
  const statesAfter = async (days: number) => {
    service.clock.advance({ seconds: days * 86_400 })
    await deleteExpired(service.deps, service.deps.log)
    return (await list(service)).messages.map(({ state }) => state).sort()
  }
  expect(await statesAfter(1.9)).toEqual(['dropped', 'failed', 'queued', 'sent'])
  expect(await statesAfter(0.2)).toEqual(['dropped', 'failed', 'failed', 'sent'])
  expect(await statesAfter(4.8)).toEqual(['dropped', 'failed', 'failed', 'sent'])
  expect(await statesAfter(0.2)).toEqual(['failed', 'failed'])
  expect(await statesAfter(23)).toEqual([])
  await service.close()
})

test('a failed mail can be sent again as long as it is kept, with the same link', async () => {
  const service = await startTestService()
  await service.mailbox.answer(550)
  const userId = await signUp(service, 'late@example.com')
  const { id } = await messageOf(service, userId, 'failed')
  await service.mailbox.accept()
  service.clock.advance({ seconds: 29 * 86_400 })
  await deleteExpired(service.deps, service.deps.log)
  expect((await retry(service, id)).status).toBe(200)
  const { text } = await service.mailbox.waitFor('late@example.com')
  expect((await service.get(linkPath(text))).headers.location).toContain('#access_token=')
  // A token without a failed message is deleted like any other.
  await messageOf(service, await signUp(service, 'later@example.com'), 'sent')
  service.clock.advance({ seconds: 31 * 86_400 })
  await deleteExpired(service.deps, service.deps.log)
  expect(await service.deps.db.selectFrom('one_time_tokens').selectAll().execute()).toEqual([])
  await service.close()
})

test('MESSAGES_KEEP shortens how long sent messages stay', async () => {
  const service = await startTestService({ AUTH_MESSAGES_KEEP: '1h' })
  const userId = await signUp(service, 'kept@example.com')
  await messageOf(service, userId, 'sent')
  service.clock.advance({ seconds: 3_601 })
  await deleteExpired(service.deps, service.deps.log)
  expect((await list(service)).messages).toEqual([])
  await service.close()
})

test('a mail of every kind leaves with its own subject and text', async ({ service }) => {
  const { SAMPLE_VARIABLES } = await import('../../adapters/mail/check-template.ts')
  const { ALL_KINDS } = await import('../../adapters/mail/kinds.ts')
  const { userId } = await service.signedIn()
  const subjects = new Set<string>()
  for (const kind of ALL_KINDS) {
    const to = `${kind}@example.com`
    // A notification has no token; with null none is searched for.
    const mail = {
      channel: 'mail',
      kind,
      userId,
      to,
      variables: SAMPLE_VARIABLES[kind],
      lifetimeSeconds: null,
    } as NewMail
    const id = await service.deps.db.transaction().execute((trx) => queueMessage(service.deps, trx, mail))
    const received = await service.mailbox.waitFor(to)
    expect(received.source).toContain(id)
    expect([kind, received.html]).toEqual([kind, expect.stringContaining('site.example')])
    expect(received.html + received.text).not.toMatch(/\{\{|ZgotmplZ|undefined|\[object/)
    subjects.add(received.subject)
  }
  expect(subjects.size).toBe(ALL_KINDS.length)
})
