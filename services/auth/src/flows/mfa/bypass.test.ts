// Attacks by a caller with the password and without the second factor: guessing, and ways around it.
import { describe, expect } from 'vitest'
import {
  challenge,
  claimsOf,
  enrollTotp,
  signInAgain,
  totpCode,
  verifyTotp,
  withTotp,
} from '../../../test/second-factors.ts'
import { fragmentOf, linkPath, test, toSignedIn } from '../../../test/service.ts'

const refusal = (status: number, code: string, msg?: string) => ({
  status,
  body: { code: status, error_code: code, ...(msg ? { msg } : {}) },
})

describe('guessing', () => {
  test('five wrong codes are free, then each wait is twice as long, even with the right code and in another session', async ({
    service,
  }) => {
    const { email, totp } = await withTotp(service)
    const thief = await signInAgain(service, email)
    service.clock.advance({ seconds: 60 })
    const challenge_id = await challenge(service, thief, totp.id)
    const guess = (code: string) => service.post(`/factors/${totp.id}/verify`, { challenge_id, code }, thief.auth)
    const wrong = () => guess(totpCode(totp.secret, service.clock.now()) === '000000' ? '000001' : '000000')
    for (let i = 0; i < 5; i++) expect(await wrong()).toMatchObject(refusal(422, 'mfa_verification_failed'))
    for (const seconds of [1, 2]) {
      const refused = await guess(totpCode(totp.secret, service.clock.now()))
      expect(refused).toMatchObject(refusal(429, 'over_request_rate_limit'))
      expect(refused.headers['retry-after']).toBe(String(seconds))
      service.clock.advance({ seconds })
      if (seconds === 1) expect((await wrong()).status).toBe(422)
    }
    expect((await guess(totpCode(totp.secret, service.clock.now()))).status).toBe(200)
  })

  test('of parallel guesses no more are checked than of guesses in a row', async ({ service }) => {
    const { email, totp } = await withTotp(service)
    const thief = await signInAgain(service, email)
    const challenge_id = await challenge(service, thief, totp.id)
    const body = { challenge_id, code: 'wrong' }
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => service.post(`/factors/${totp.id}/verify`, body, thief.auth)),
    )
    expect(answers.filter(({ status }) => status === 422)).toHaveLength(5)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(7)
  })

  test('in sessions of the password alone do not keep the owner from proving the factor', async ({
    service: shared,
  }) => {
    for (const header of [undefined, 'x-real-ip']) {
      const service = await shared.with(header ? { AUTH_RATE_LIMIT_HEADER: header } : {})
      const { email, totp } = await withTotp(service)
      const from = (address: string) => (header ? { [header]: address } : {})
      const askFrom = (address: string, auth: object) =>
        service.post(`/factors/${totp.id}/challenge`, {}, { ...auth, ...from(address) })
      let looked = 0
      let refused = 0
      for (let session = 0; session < 8; session++) {
        const { auth } = await signInAgain(service, email)
        const address = `198.51.100.${session}`
        const { body } = await askFrom(address, auth)
        for (let guess = 0; guess < 6; guess++) {
          const answer = await service.post(
            `/factors/${totp.id}/verify`,
            { challenge_id: body.id, code: 'wrong' },
            { ...auth, ...from(address) },
          )
          if (answer.status === 422) looked++
          else refused++
        }
      }
      // All sessions and addresses together: the free attempts, then one for each wait that has passed.
      expect([looked, refused]).toEqual([20, 28])
      await service.post('/otp', { email })
      const { text } = await service.mailbox.waitFor(email, { subject: 'Your sign-in link' })
      const { access_token } = fragmentOf(await service.get(linkPath(text)))
      service.clock.advance({ seconds: 30 })
      const auth = { authorization: `Bearer ${access_token}` }
      const asked = await askFrom('192.0.2.1', auth)
      expect(asked.status).toBe(200)
      const proof = { challenge_id: asked.body.id, code: totpCode(totp.secret, service.clock.now()) }
      const proven = await service.post(`/factors/${totp.id}/verify`, proof, { ...auth, ...from('192.0.2.1') })
      expect(proven.status).toBe(200)
      await service.close()
    }
  })

  test('uses up no challenge of another session, whatever a session asks for', async ({ service }) => {
    const { email, totp } = await withTotp(service)
    const thief = await signInAgain(service, email)
    const ask = async (auth: object) => (await service.post(`/factors/${totp.id}/challenge`, {}, { ...auth })).status
    const statuses = []
    for (let i = 0; i < 20; i++) statuses.push(await ask(thief.auth))
    expect([statuses[14], statuses[15]]).toEqual([200, 429])
    const owner = await signInAgain(service, email)
    expect((await verifyTotp(service, owner, totp)).status).toBe(200)
  })

  test('challenges and answers of one factor in a session are limited by the minute, in all replicas together', async ({
    service,
  }) => {
    const limit = { AUTH_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: '4' }
    const [one, two] = await Promise.all([service.with(limit), service.with(limit)])
    const user = await one.signedIn()
    const { id } = await enrollTotp(one, user)
    const statuses = []
    for (const on of [one, two, one, two, one, two]) {
      const { status, headers } = await on.post(`/factors/${id}/challenge`, {}, user.auth)
      statuses.push(status)
      if (status === 429) expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    }
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
    await Promise.all([one.close(), two.close()])
  })
})

describe('a caller who knows only the password', () => {
  test('cannot add a second factor beside the one there is', async ({ service }) => {
    const { email } = await withTotp(service)
    const { auth } = await signInAgain(service, email)
    const answer = await service.post('/factors', { factor_type: 'totp', friendly_name: 'theirs' }, auth)
    expect(answer).toMatchObject(refusal(403, 'insufficient_aal', 'AAL2 required to enroll a new factor'))
  })

  test('cannot prove a factor begun before the owner had one', async ({ service: shared }) => {
    const service = await shared.with({
      AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
      AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
    })
    const email = 'squatted@example.com'
    const thief = await service.signedIn(email)
    const body = { factor_type: 'phone', friendly_name: 'theirs', phone: '+4915112345678' }
    const { id } = (await service.post('/factors', body, thief.auth)).body
    const owner = await signInAgain(service, email)
    await verifyTotp(service, owner, await enrollTotp(service, owner))
    const { auth } = await signInAgain(service, email)
    for (const step of ['challenge', 'verify']) {
      const answer = await service.post(`/factors/${id}/${step}`, { code: '123456' }, auth)
      expect(answer).toMatchObject(refusal(403, 'insufficient_aal'))
    }
    await service.close()
  })

  test('cannot remove a proven factor', async ({ service }) => {
    const { email, totp } = await withTotp(service)
    const { auth } = await signInAgain(service, email)
    const text = 'AAL2 required to unenroll verified factor'
    expect(await service.delete(`/factors/${totp.id}`, auth)).toMatchObject(refusal(422, 'insufficient_aal', text))
  })

  test('cannot change password or address, but what is not secret', async ({ service }) => {
    const user = await withTotp(service)
    const { auth } = await signInAgain(service, user.email)
    const text = 'AAL2 session is required to update email or password when MFA is enabled.'
    for (const change of [{ password: 'another horse' }, { email: 'thief@example.com' }, { phone: '+4915112345679' }]) {
      expect(await service.put('/user', change, auth)).toMatchObject(refusal(401, 'insufficient_aal', text))
    }
    expect((await service.put('/user', { email: user.email, data: { theme: 'dark' } }, auth)).status).toBe(200)
    const own = await verifyTotp(service, { auth }, user.totp)
    const change = { password: 'another horse' }
    expect((await service.put('/user', change, toSignedIn(own.body).auth)).status).toBe(200)
  })

  test('gets no further by recovering the password: the session is aal1 and the factor stays', async ({ service }) => {
    const { email, totp } = await withTotp(service)
    await service.post('/recover', { email })
    const mail = await service.mailbox.waitFor(email, { subject: 'Reset' })
    const token_hash = /token=([\w-]+)/.exec(mail.text)?.[1]
    const recovered = toSignedIn((await service.post('/verify', { type: 'recovery', token_hash })).body)
    expect(claimsOf(recovered)).toMatchObject({ aal: 'aal1' })
    expect(await service.put('/user', { password: 'another horse' }, recovered.auth)).toMatchObject(
      refusal(401, 'insufficient_aal'),
    )
    expect((await service.get('/user', recovered.auth)).body.factors).toMatchObject([
      { id: totp.id, status: 'verified' },
      { factor_type: 'recovery_code' },
    ])
  })

  test('loses a change of address that waited when the first factor was proven', async ({ service }) => {
    const user = await service.signedIn()
    await service.put('/user', { email: `waiting-${user.userId}@example.com` }, user.auth)
    const { body } = await verifyTotp(service, user, await enrollTotp(service, user))
    expect(body.user).not.toHaveProperty('new_email')
  })
})
