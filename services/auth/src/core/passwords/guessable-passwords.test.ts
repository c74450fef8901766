import { describe, expect, test as plain } from 'vitest'
import { linkPath, type TestService, test } from '../../../test/service.ts'
import { findWeaknesses } from './password-rules.ts'

/** One of the 10,000 most used passwords, in another letter case than the list. */
const COMMON = 'PassWord1'
/** The same in the wide characters of an East Asian keyboard. */
const WIDE = 'ｐａｓｓｗｏｒｄ１'

const REFUSED = {
  status: 422,
  body: { error_code: 'weak_password', weak_password: { reasons: ['pwned'] } },
}

const newAddress = () => `jane.roe-${Math.random().toString(36).slice(2)}@example.com`

describe('a guessable password is refused as pwned', () => {
  test.for([COMMON, WIDE])('at sign-up: %s', async (password, { service }) => {
    const answer = await service.post('/signup', { email: newAddress(), password })
    expect(answer).toMatchObject(REFUSED)
    expect(answer.body.msg).toContain('one of the most used ones')
  })

  test.for(['Example2026!', 'jane.roe', '12jane12', 'site.example'])(
    'at sign-up, as a word of the address or of the site: %s',
    async (password, { service }) => {
      const answer = await service.post('/signup', { email: 'jane.roe@mail.example.com', password })
      expect(answer).toMatchObject(REFUSED)
      expect(answer.body.msg).toContain('a word of the email address or of the site')
    },
  )

  test('at a change, by the user and by an admin, even as a word of the address that comes with it', async ({
    service,
  }) => {
    const { auth, userId } = await service.signedIn(`mallory-${Math.random()}@example.com`)
    for (const change of [
      { password: COMMON },
      { password: 'mallory1' },
      { password: 'newname.1', email: 'newname@example.com' },
    ]) {
      expect(await service.put('/user', change, auth)).toMatchObject(REFUSED)
      expect(await service.put(`/admin/users/${userId}`, change, service.admin)).toMatchObject(REFUSED)
    }
  })

  test('as the password that an invited user chooses, and leaves the link to be used', async ({ service }) => {
    const email = `invited-${Math.random().toString(36).slice(2)}@example.com`
    await service.post('/invite', { email }, service.admin)
    const token = new URLSearchParams(linkPath((await service.mailbox.waitFor(email)).text).split('?')[1]).get('token')
    const accept = (password: string) => service.post('/verify', { type: 'invite', token_hash: token, password })
    for (const password of [COMMON, 'Invited-1']) expect(await accept(password)).toMatchObject(REFUSED)
    expect((await accept('correct horse')).status).toBe(200)
  })

  test('of a link for a sign-up', async ({ service }) => {
    const order = { type: 'signup', email: newAddress(), password: COMMON }
    expect(await service.post('/admin/generate_link', order, service.admin)).toMatchObject(REFUSED)
  })
})

test('a guessable password in use still signs in, and the answer reports its weakness', async ({ service }) => {
  const email = newAddress()
  await service.post('/admin/users', { email, password: COMMON, email_confirm: true }, service.admin)
  const answer = await service.post('/token?grant_type=password', { email, password: COMMON })
  expect(answer).toMatchObject({ status: 200, body: { weak_password: { reasons: ['pwned'] } } })
})

test('with AUTH_PASSWORD_REFUSE_GUESSABLE=false they are accepted', async ({ service }) => {
  const lenient: TestService = await service.with({ AUTH_PASSWORD_REFUSE_GUESSABLE: 'false' })
  for (const password of [COMMON, 'Example2026!']) {
    expect((await lenient.post('/signup', { email: newAddress(), password })).status).toBe(200)
  }
  await lenient.close()
})

plain.for<[string, string]>([
  ['a passphrase that holds a word of the address', 'example of my garden'],
  ['words of three letters', 'roe1roe1'],
  ['other words', 'jane.roe of nowhere'],
])('%s is not a word of the context: %s', ([, password]) => {
  const rules = { minLength: 6, requiredCharacters: [], refusesGuessable: true }
  const context = { email: 'jane.roe@example.com', siteUrl: 'https://site.example' }
  expect(findWeaknesses(password, rules, context)).toEqual([])
})
