import { expect } from 'vitest'
import { linkPath, test, toSignedIn } from './service.ts'

test('a user signs up, follows the link in the mail, signs in, refreshes, reads and changes the account and signs out', async ({
  service,
}) => {
  const { mailbox, post, get, put } = service
  const signup = await post('/signup', { email: 'Ada@Example.com', password: 'correct horse', data: { name: 'Ada' } })
  expect(signup).toMatchObject({ status: 200, body: { email: 'ada@example.com', role: 'authenticated' } })
  const mail = await mailbox.waitFor('ada@example.com')
  expect(mail.subject).toBe('Confirm your email address')

  const redirect = await get(linkPath(mail.text))
  expect(redirect.status).toBe(303)
  expect(redirect.headers.location).toMatch(
    /^https:\/\/site\.example#access_token=.+&refresh_token=.+&sb=&token_type=bearer&type=signup$/,
  )

  const signIn = await post('/token?grant_type=password', { email: 'ada@example.com', password: 'correct horse' })
  expect(signIn.status).toBe(200)
  const first = toSignedIn(signIn.body)
  const refreshed = await post('/token?grant_type=refresh_token', { refresh_token: first.refreshToken })
  expect(refreshed).toMatchObject({ status: 200, body: { user: { id: first.userId } } })
  const { auth } = toSignedIn(refreshed.body)
  expect(await get('/user', auth)).toMatchObject({
    status: 200,
    body: { id: first.userId, user_metadata: { name: 'Ada', email_verified: true } },
  })
  expect(await put('/user', { data: { name: 'Ada L.' } }, auth)).toMatchObject({
    status: 200,
    body: { user_metadata: { name: 'Ada L.' } },
  })
  expect(await post('/logout', {}, auth)).toMatchObject({ status: 204 })
})
