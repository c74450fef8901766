// The table scope × route, cell by cell. A new route without a row fails here.
import { beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { PASSKEYS } from '../../../../test/webauthn/passkeys.ts'
import { STANDARD_SCOPES } from '../oauth-scopes.ts'
import { SCOPES_BY_ROUTE } from './opened-routes.ts'
import { asClient, asMachine } from './testing/client-tokens.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    ...PASSKEYS,
    AUTH_CONSOLE_ENABLED: 'true',
    AUTH_HOSTED_PAGES_ENABLED: 'true',
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_SELF_DELETION_ENABLED: 'true',
    AUTH_AUDIT_LOG_DISABLE_POSTGRES: 'true',
  })
  return () => service.close()
})

/** Routes that need a token, as the table names them. */
async function routesWithToken(): Promise<string[]> {
  const { body } = await service.get('/openapi.json')
  return Object.entries<Record<string, { security: object[] }>>(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security }]) => security.length > 0)
      .map(([method]) => `${method.toUpperCase()} ${path.replaceAll(/{(\w+)}/g, ':$1')}`),
  )
}

test('the table has a row for each route that needs a token, and no other', async () => {
  expect([...SCOPES_BY_ROUTE.keys()].toSorted()).toEqual((await routesWithToken()).toSorted())
})

const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const SCOPES = [...STANDARD_SCOPES, 'reports:read', '']
const ALL = STANDARD_SCOPES.join(' ')

/** Asks a route about nothing that exists; `refusal` is the challenge of a token whose scopes do not open it. */
async function ask(route: string, headers: Record<string, string>, { app } = service) {
  const [method = '', path = ''] = route.split(' ')
  const url = path.replaceAll(/:\w+/g, UNKNOWN)
  const payload = method === 'GET' ? {} : { payload: {} }
  const answer = await app.inject({ method: method as 'GET', url, headers, ...payload })
  const isRefused = answer.statusCode === 403 && answer.headers['x-sb-error-code'] === 'insufficient_scope'
  return { refusal: isRefused ? answer.headers['www-authenticate'] : undefined, status: answer.statusCode }
}

const refusalOf = (opening: readonly string[]) =>
  `Bearer error="insufficient_scope"${opening.length > 0 ? `, scope="${opening.join(' ')}"` : ''}`

/** Routes whose answer to a token with one scope differs from the table. */
async function faultsOf(scope: string, auth: Record<string, string>) {
  const cells = [...SCOPES_BY_ROUTE].map(async ([route, opening]) => {
    const refusal = opening.includes(scope) ? undefined : refusalOf(opening)
    const answer = await ask(route, auth)
    return answer.refusal === refusal ? [] : [{ scope, route, answer }]
  })
  return (await Promise.all(cells)).flat()
}

test.each(['person', 'machine'])(
  "a %s's token opens what its one scope has in the table, and no more",
  async (kind) => {
    const isPerson = kind === 'person'
    const { as } = isPerson ? await asClient(service, { role: 'service_role' }) : await asMachine(service, ALL)
    for (const scope of SCOPES) expect(await faultsOf(scope, await as({ scope }))).toEqual([])
  },
)

test('a token with all scopes is refused everywhere once the OAuth server is disabled', async () => {
  const off = await service.with({ AUTH_OAUTH_SERVER_ENABLED: 'false' })
  const tokens = [await asClient(service, { role: 'service_role', scope: ALL }), await asMachine(service, ALL)]
  for (const { auth } of tokens) {
    const answers = [...SCOPES_BY_ROUTE.keys()].map(async (route) => ({ route, ...(await ask(route, auth, off)) }))
    const opened = (await Promise.all(answers)).filter(({ refusal }) => refusal === undefined)
    expect(opened).toEqual([
      { route: 'GET /oauth/userinfo', status: 404 },
      { route: 'POST /oauth/userinfo', status: 404 },
    ])
  }
  await off.close()
})
