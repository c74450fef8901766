import { typedClient } from '@services/common/testing/http/typed-client'
import { expect } from 'vitest'
import { test } from './service.ts'

/** An application's code: arguments and results have the types of the document, without a cast. */
const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

type User = components['schemas']['User']
const nameOf = (user: User): string => user.email

export async function run(baseUrl: string, authorization: string) {
  const client = createClient<paths>({ baseUrl })
  const signedUp = await client.POST('/signup', { body: { email: 'ada@example.com', password: 'correct horse', data: null } })
  if (!signedUp.data) throw new Error(signedUp.error.msg)
  const user = 'user' in signedUp.data ? signedUp.data.user : signedUp.data

  const signedIn = await client.POST('/token', {
    params: { query: { grant_type: 'password' } },
    body: { email: 'ada@example.com', password: 'correct horse' },
  })
  if (!signedIn.data) throw new Error(signedIn.error.error_code)
  const seconds: number = signedIn.data.expires_in

  const listed = await client.GET('/admin/users', {
    params: { query: { page: 1, per_page: 2, sort: 'created_at asc' } },
    headers: { authorization },
  })
  if (!listed.data) throw new Error(listed.error.msg)
  const names: string[] = listed.data.users.map(nameOf)
  const id: string = listed.data.users[0]?.id ?? ''
  const deleted = await client.DELETE('/admin/users/{user_id}', { params: { path: { user_id: id } }, headers: { authorization } })
  return { names, name: nameOf(user), seconds, status: deleted.response.status }
}
`

interface Program {
  run(baseUrl: string, authorization: string): Promise<object>
}

test('a client made of the document signs up and in, and lists and deletes users, without a cast', async ({
  service,
}) => {
  const open = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
  const { body } = await open.get('/openapi.json')
  const { run } = await typedClient<Program>(body, PROGRAM)
  const url = await open.app.listen({ host: '127.0.0.1', port: 0 })
  expect(await run(url, service.admin.authorization)).toEqual({
    names: ['ada@example.com'],
    name: 'ada@example.com',
    seconds: 3600,
    status: 200,
  })
  await open.close()
})

test('a client made of the document does not compile with another word than a choice has, or a value of another type', async ({
  service,
}) => {
  const { body } = await service.get('/openapi.json')
  const wrong = [
    ["{ grant_type: 'password' }", "{ grant_type: 'passwort' }"],
    ['page: 1', "page: 'one'"],
    ['const seconds: number', 'const seconds: string'],
  ] as const
  for (const [right, other] of wrong) {
    await expect(typedClient(body, PROGRAM.replace(right, other))).rejects.toThrow(/is not assignable to type/)
  }
})
