// Fields of the dialogs about clients, whose modules are for browsers and need none.
import { expect, test } from 'vitest'
import { AUTH_METHODS, GRANT_TYPES } from '../core/oauth-server/client-metadata.ts'

const open = (name: string) => import(new URL(`browser/screens/oauth/${name}.js`, import.meta.url).href)
const { bodyOf, newClientFields } = (await open('client-fields')) as {
  bodyOf: (values: object) => Record<string, unknown>
  newClientFields: (type: 'public' | 'confidential') => { name: string }[]
}
const { GRANTS, METHODS } = (await open('client-names')) as Record<'GRANTS' | 'METHODS', object>

test('every grant type and method has words', () => {
  expect(Object.keys(GRANTS).toSorted()).toEqual(GRANT_TYPES.toSorted())
  expect(Object.keys(METHODS)).toEqual([...AUTH_METHODS])
})

test('a public client is offered neither tokens of its own nor a proof', () => {
  const names = (type: 'public' | 'confidential') => newClientFields(type).map(({ name }) => name)
  expect(names('confidential').filter((name) => !names('public').includes(name))).toEqual([
    ...['client_credentials', 'token_endpoint_auth_method', 'jwks_uri'],
  ])
})

test('a list is one value per line, and empty keys are none', () => {
  const typed = { redirect_uris: ' https://a.example/a,b \n\nmyapp://cb', scope: ' openid\n email ', jwks: {} }
  const grants = { authorization_code: true, refresh_token: false }
  expect(bodyOf({ ...typed, ...grants })).toEqual({
    redirect_uris: ['https://a.example/a,b', 'myapp://cb'],
    scope: 'openid email',
    jwks: null,
    grant_types: ['authorization_code'],
  })
})
