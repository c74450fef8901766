import { describe, expect } from 'vitest'
import { asAdmin, freshEmail, remove } from '../../../../test/admin.ts'
import { type SignedIn, startTestService, type TestService, test, toSignedIn } from '../../../../test/service.ts'

const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

/** A user with sessions on a phone and, a minute later, on a desktop. */
async function setUp(service: TestService) {
  const admin = await asAdmin(service)
  const user = await admin.create({ email: freshEmail(), password: 'pw', email_confirm: true })
  const signIn = async (agent: string) => {
    service.clock.advance({ seconds: 60 })
    const headers = { 'user-agent': agent, 'x-forwarded-for': '192.0.2.7' }
    return toSignedIn(
      (await service.post('/token?grant_type=password', { email: user.email, password: 'pw' }, headers)).body,
    )
  }
  const phone = await signIn('phone')
  const desktop = await signIn('desktop')
  const alive = async ({ refreshToken }: SignedIn) =>
    (await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).status === 200
  return { admin, user, phone, desktop, alive, path: `/admin/users/${user.id}/sessions` }
}

describe('GET /user/sessions', () => {
  test("gives the caller's own, newest first, and says which one asks", async ({ service }) => {
    const { phone } = await setUp(service)
    await setUp(service)
    const { status, body } = await service.get('/user/sessions', phone.auth)
    expect(status).toBe(200)
    expect(body).toEqual([
      {
        id: expect.any(String),
        created_at: expect.any(String),
        refreshed_at: expect.any(String),
        not_after: null,
        aal: 'aal1',
        user_agent: 'desktop',
        ip: '192.0.2.7',
        current: false,
      },
      expect.objectContaining({ user_agent: 'phone', current: true }),
    ])
  })

  test('does not show what has ended by its limits', async () => {
    const service = await startTestService({ AUTH_SESSIONS_TIMEBOX: '90s', AUTH_JWT_EXP: '3600' })
    const { admin, path, desktop } = await setUp(service)
    service.clock.advance({ seconds: 45 })
    const { body } = await service.get('/user/sessions', desktop.auth)
    expect(body).toMatchObject([{ user_agent: 'desktop' }])
    expect((await admin.get(path)).body).toHaveLength(1)
    await service.close()
  })

  test('needs a token', async ({ service }) => {
    expect((await service.get('/user/sessions')).status).toBe(401)
  })
})

describe('DELETE /user/sessions/{id}', () => {
  const idOf = async (service: TestService, { auth }: SignedIn, agent: string) => {
    const { body } = await service.get('/user/sessions', auth)
    return body.find(({ user_agent }: { user_agent: string }) => user_agent === agent).id as string
  }

  test('ends that session and no other, once, and is audited', async ({ service }) => {
    const { admin, user, phone, desktop, alive } = await setUp(service)
    const id = await idOf(service, desktop, 'phone')
    const answer = await remove(service, `/user/sessions/${id}`, desktop.auth)
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect([await alive(phone), await alive(desktop)]).toEqual([false, true])
    expect((await remove(service, `/user/sessions/${id}`, desktop.auth)).status).toBe(404)
    expect((await admin.audited('logout', user.id))[0]).toMatchObject({
      actor_id: user.id,
      log_type: 'account',
      traits: { session_id: id, user_id: user.id },
    })
  })

  test('may end the current one, after which its token ends no other', async ({ service }) => {
    const { phone, desktop, alive } = await setUp(service)
    const own = await idOf(service, phone, 'phone')
    const other = await idOf(service, phone, 'desktop')
    expect((await remove(service, `/user/sessions/${own}`, phone.auth)).status).toBe(204)
    expect(await remove(service, `/user/sessions/${other}`, phone.auth)).toMatchObject({
      status: 403,
      body: { error_code: 'session_not_found' },
    })
    expect(await alive(desktop)).toBe(true)
  })

  test("another user's, an unknown and a malformed id are one answer, and end nothing", async ({ service }) => {
    const theirs = await setUp(service)
    const { phone } = await setUp(service)
    const foreign = await idOf(service, theirs.phone, 'phone')
    for (const id of [foreign, UNKNOWN, 'mine', '%00']) {
      const answer = await remove(service, `/user/sessions/${id}`, phone.auth)
      expect([id, answer.status, answer.body.error_code]).toEqual([id, 404, 'session_not_found'])
    }
    expect(await theirs.alive(theirs.phone)).toBe(true)
  })

  test('of deletions of one session at once, one ends it', async ({ service }) => {
    const { desktop } = await setUp(service)
    const id = await idOf(service, desktop, 'phone')
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => remove(service, `/user/sessions/${id}`, desktop.auth)),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404, 404, 404, 404, 404])
  })
})

describe('/admin/users/{user_id}/sessions', () => {
  test('GET gives them newest first', async ({ service }) => {
    const { admin, path } = await setUp(service)
    const { status, body } = await admin.get(path)
    expect([status, body.map(({ user_agent }: { user_agent: string }) => user_agent)]).toEqual([
      200,
      ['desktop', 'phone'],
    ])
    expect(body[0]).not.toHaveProperty('current')
  })

  test('GET answers 1,000 of 10,000 at most, and all by cursor, each once', async ({ service }) => {
    const { admin, user, path } = await setUp(service)
    await service.deps.pool.query(
      `insert into sessions (id, user_id, aal, initial_aal, amr, refreshed_at, created_at)
        select gen_random_uuid(), $1, 'aal1', 'aal1', '[]', now(), $2::timestamptz - n / 3 * interval '1 ms'
        from generate_series(1, 9998) n`,
      [user.id, service.clock.now()],
    )
    expect((await admin.get(path)).body).toHaveLength(1_000)
    const first = await admin.get(`${path}?limit=50`)
    expect(first.body).toHaveLength(50)
    const ids = new Set<string>()
    let next: string | undefined = `${path}?limit=1000`
    for (let answers = 0; next; answers++) {
      expect(answers).toBeLessThan(10)
      const { body, headers } = await admin.get(next)
      for (const { id } of body) ids.add(id)
      next = /<([^>]+)>; rel="next"/.exec(String(headers.link))?.[1]
    }
    expect(ids.size).toBe(10_000)
    for (const wrong of ['limit=0', 'cursor=x']) expect((await admin.get(`${path}?${wrong}`)).status).toBe(400)
  })

  test('DELETE of one ends that one, with the admin in the audit log', async ({ service }) => {
    const { admin, user, path, phone, desktop, alive } = await setUp(service)
    const [{ id }] = (await admin.get(path)).body
    expect((await admin.delete(`${path}/${id}`)).status).toBe(204)
    expect([await alive(phone), await alive(desktop)]).toEqual([true, false])
    expect((await admin.audited('logout', user.id))[0]).toMatchObject({
      actor_username: 'service_role',
      traits: { user_id: user.id, user_email: user.email, session_id: id },
    })
    expect(await admin.delete(`${path}/${id}`)).toMatchObject({
      status: 404,
      body: { error_code: 'session_not_found' },
    })
    expect((await admin.delete(`${path}/x`)).status).toBe(404)
  })

  test("DELETE of another user's session by the wrong path is 404", async ({ service }) => {
    const theirs = await setUp(service)
    const { admin, path } = await setUp(service)
    const [{ id }] = (await admin.get(theirs.path)).body
    expect((await admin.delete(`${path}/${id}`)).status).toBe(404)
    expect((await admin.get(theirs.path)).body).toHaveLength(2)
  })

  test('DELETE of all ends all, and is audited only when there were any', async ({ service }) => {
    const { admin, user, path, phone, desktop, alive } = await setUp(service)
    const bystander = await setUp(service)
    expect((await admin.delete(path)).status).toBe(204)
    expect([await alive(phone), await alive(desktop), await alive(bystander.phone)]).toEqual([false, false, true])
    expect((await admin.delete(path)).status).toBe(204)
    expect(await admin.audited('logout', user.id)).toMatchObject([{ traits: { sessions: 2 } }])
  })

  test('an unknown and a malformed user are 404', async ({ service }) => {
    const admin = await asAdmin(service)
    for (const [id, code] of [
      [UNKNOWN, 'user_not_found'],
      ['me', 'validation_failed'],
    ]) {
      for (const answer of [
        await admin.get(`/admin/users/${id}/sessions`),
        await admin.delete(`/admin/users/${id}/sessions`),
        await admin.delete(`/admin/users/${id}/sessions/${UNKNOWN}`),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { error_code: code } })
      }
    }
  })
})
