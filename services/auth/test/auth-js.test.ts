// Every method of the public client that belongs to our endpoints, called against the running service. The calls:
// ./auth-js/; the table of methods: ./auth-js/methods.ts. Answers while a capability is off: auth-js-off.test.ts.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, type RunnerTestCase, type RunnerTestSuite, test } from 'vitest'
import './auth-js/admin.ts'
import './auth-js/codes.ts'
import './auth-js/custom-providers.ts'
import './auth-js/external.ts'
import './auth-js/hosted-pages.ts'
import './auth-js/mail-links.ts'
import './auth-js/mfa.ts'
import './auth-js/oauth-clients.ts'
import './auth-js/oauth-grants.ts'
import './auth-js/passkeys.ts'
import './auth-js/sessions.ts'
import './auth-js/trusted-devices.ts'
import './auth-js/web3.ts'
import { callers } from './auth-js/client.ts'
import { METHODS } from './auth-js/methods.ts'

const methods = Object.entries(METHODS)
const named = methods.flatMap(([method, row]) => ('title' in row ? [{ method, ...row }] : []))

test('each test that the table of methods names is in its file', () => {
  const sourceOf = (file: string) => readFileSync(join(import.meta.dirname, 'auth-js', file), 'utf8')
  expect(named.filter(({ file, title }) => !sourceOf(file).includes(`'${title}'`))).toEqual([])
})

// Only a run of all tests calls all methods.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from it
afterAll(({}, file) => {
  if (!testsOf(file).every(({ result }) => result?.state === 'pass')) return
  const unproven = named.filter(({ method, title }) => !callers.get(method)?.has(title))
  expect(unproven, 'methods that the test named for them does not call').toEqual([])
  const present = methods.filter(([method, row]) => 'missing' in row && callers.has(method))
  expect(present, 'methods that tests call although they are not ours yet').toEqual([])
})

const testsOf = ({ tasks }: Readonly<RunnerTestSuite>): RunnerTestCase[] =>
  tasks.flatMap((task) => (task.type === 'suite' ? testsOf(task) : [task]))
