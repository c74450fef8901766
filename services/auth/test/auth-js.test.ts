// Every method of the public client that belongs to our endpoints, called against the running service. The calls:
// ./auth-js/. Answers while a capability is off: auth-js-off.test.ts.
import { afterAll, expect, type RunnerTestCase, type RunnerTestSuite, test } from 'vitest'
import './auth-js/admin.ts'
import './auth-js/codes.ts'
import './auth-js/external.ts'
import './auth-js/mail-links.ts'
import './auth-js/mfa.ts'
import './auth-js/sessions.ts'
import './auth-js/web3.ts'
import { called, methodsOfClient } from './auth-js/client.ts'

/** Methods of features that do not exist here. */
const NOT_OURS_YET = [
  /^signInWithSSO$/,
  /^(admin\.)?passkey\./,
  /^(signInWith|register)Passkey$/,
  /^(admin\.)?oauth\./,
  // Providers are settings.
  /^admin\.customProviders\./,
]

const methods = methodsOfClient()
const isOurs = (name: string) => !NOT_OURS_YET.some((pattern) => pattern.test(name))

test('each method that is not ours yet is one of the library', () => {
  expect(NOT_OURS_YET.filter((pattern) => !methods.some((name) => pattern.test(name)))).toEqual([])
})

// Only a run of all tests calls all methods.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from it
afterAll(({}, file) => {
  if (!testsOf(file).every(({ result }) => result?.state === 'pass')) return
  const missing = methods.filter((name) => isOurs(name) && !called.has(name))
  expect(missing, 'methods of the library that no test calls').toEqual([])
  const present = methods.filter((name) => !isOurs(name) && called.has(name))
  expect(present, 'methods that tests call although they are not ours yet').toEqual([])
})

const testsOf = ({ tasks }: Readonly<RunnerTestSuite>): RunnerTestCase[] =>
  tasks.flatMap((task) => (task.type === 'suite' ? testsOf(task) : [task]))
