// Every method of the public client that belongs to our endpoints, called against the running service. The calls:
// ./auth-js/. Methods that we lack, with the reason: the end of this file.
import { AuthAdminApi, AuthClient } from '@supabase/auth-js'
import { afterAll, expect, type RunnerTestCase, type RunnerTestSuite, test } from 'vitest'
import './auth-js/admin.ts'
import './auth-js/codes.ts'
import './auth-js/external.ts'
import './auth-js/mail-links.ts'
import './auth-js/mfa.ts'
import './auth-js/sessions.ts'
import { called, isGroup } from './auth-js/client.ts'

/** Methods, or whole groups of them, that come with endpoints of their own. */
const NOT_OURS_YET: Record<string, string> = {
  signInWithSSO: 'no SAML',
  signInWithWeb3: 'no wallets',
  passkey: 'passkeys',
  signInWithPasskey: 'passkeys',
  registerPasskey: 'passkeys',
  'admin.passkey': 'passkeys',
  oauth: 'we are no OAuth server',
  'admin.oauth': 'we are no OAuth server',
  'admin.customProviders': 'external sign-in: providers are settings',
}

/** Private, as the types of the library say, although not by their names. */
const PRIVATE = ['signInWithEthereum', 'signInWithSolana', 'linkIdentityOAuth', 'linkIdentityIdToken', 'fetchJwk']

const url = 'http://127.0.0.1'
const methods = [...publicOf(new AuthClient({ url })), ...publicOf(new AuthAdminApi({ url }), 'admin.')]

test('each method that is not ours yet is one of the library', () => {
  expect(methods).toEqual(expect.arrayContaining(Object.keys(NOT_OURS_YET)))
})

// Only a run of all tests calls all methods.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from it
afterAll(({}, file) => {
  if (!testsOf(file).every(({ result }) => result?.state === 'pass')) return
  const missing = methods.filter((name) => !called.has(name) && !(name in NOT_OURS_YET))
  expect(missing, 'methods of the library that no test calls').toEqual([])
  const present = Object.keys(NOT_OURS_YET).filter((name) => called.has(name))
  expect(present, 'methods that tests call although they are not ours yet').toEqual([])
})

const testsOf = ({ tasks }: Readonly<RunnerTestSuite>): RunnerTestCase[] =>
  tasks.flatMap((task) => (task.type === 'suite' ? testsOf(task) : [task]))

/** Public methods of an object and its groups of methods, which have no class of their own. */
function publicOf(object: object, path = ''): string[] {
  const prototype = Object.getPrototypeOf(object)
  const methods = Object.entries(Object.getOwnPropertyDescriptors(prototype))
    .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor' && !name.startsWith('_'))
    .map(([name]) => name)
    .filter((name) => !PRIVATE.includes(name))
  const groups = Object.entries(object)
    .filter(([name]) => name !== 'admin' && name !== 'storage')
    .filter(([, value]) => isGroup(value))
    .flatMap(([name, group]) => (path + name in NOT_OURS_YET ? [name] : membersOf(group, name)))
  return [...methods, ...groups].map((name) => path + name)
}

/** A group's methods, with those of the groups in it; `client` is the way back. */
function membersOf(group: object, name: string): string[] {
  return Object.entries(group)
    .filter(([member]) => member !== 'client' && !member.startsWith('_'))
    .flatMap(([member, value]) => (isGroup(value) ? membersOf(value, `${name}.${member}`) : [`${name}.${member}`]))
}
