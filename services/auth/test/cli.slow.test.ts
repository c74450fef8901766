// Behaviour that only a separate process shows: its streams and its end.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { programOf } from '@services/common/testing/run/program'
import { expect, test } from 'vitest'
import { auth, authHere } from './command-line.ts'
import { processEnvironment } from './process-environment.ts'
import { createDatabase } from './service.ts'

test('a process of its own says the same and ends with the same code', async () => {
  const [help, wrong] = await Promise.all([auth(['--help'], { AUTH_SITE_URL: '' }), auth(['migrat'])])
  expect(help).toEqual(await authHere(['--help']))
  expect(wrong).toEqual(await authHere(['migrat']))
})

test('--json prints one JSON value and nothing else', async () => {
  const results = await Promise.all(
    [
      'version',
      'config check',
      'config table',
      'keys generate --alg ES256',
      'tokens admin',
      'mail preview recovery',
    ].map((line) => auth([...line.split(' '), '--json'])),
  )
  for (const { code, stdout } of results) {
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toBeTypeOf('object')
    expect(stdout.trim().split('\n')).toHaveLength(1)
  }
})

test('an unreachable database is reported in one line', async () => {
  const { code, stdout, stderr } = await auth(['users', 'import', '-'], {}, '{"email":"a@b.example"}')
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain('the database cannot be reached')
  expect(stderr).not.toContain('    at ')
})

test('a database that refuses is reported in one line, and so is a missing file', async () => {
  const { url, drop } = await createDatabase()
  const wrong = (change: Partial<URL>) => ({ AUTH_DATABASE_URL: Object.assign(new URL(url), change).href })
  const settings: [Record<string, string>, string][] = [
    [wrong({ pathname: '/nowhere' }), 'database "nowhere" does not exist'],
    [wrong({ username: 'nobody' }), 'nobody'],
    [wrong({ search: '?sslmode=verify-full' }), 'does not support SSL'],
    [wrong({ search: '?sslmode=verify-full&sslrootcert=/no/ca.crt' }), "open '/no/ca.crt'"],
  ]
  const results = await Promise.all(settings.map(([env]) => auth(['migrate', 'status'], env)))
  await drop()
  for (const [index, { code, stdout, stderr }] of results.entries()) {
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(settings[index]?.[1])
    expect(stderr).not.toContain('    at ')
  }
})

test('a result that cannot be written is a reported failure', { tags: 'linux' }, async () => {
  const cli = programOf('auth', 'cli')
  const run = promisify(execFile)('sh', ['-c', 'exec "$@" > /dev/full', 'sh', process.execPath, cli, 'version'])
  await expect(run).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^the result could not be written: ENOSPC/),
  })
})

// `… 2>&1 | head`: the reader has got all that it wants.
test.for(['cli tokens admin', 'cli users list', 'cli migrate', 'cli config table', 'cli worker', 'main'])(
  '%s ends when both of its outputs are closed',
  async (line) => {
    const [entry, ...args] = line.split(' ')
    const program = [process.execPath, programOf('auth', entry === 'main' ? entry : 'cli'), ...args]
    // None reaches a database, so those that serve end by themselves.
    const settings = {
      AUTH_UNKNOWN: 'x',
      AUTH_DATABASE_URL: 'postgres://a@127.0.0.1:1/a?sslmode=verify-full&sslrootcert=/no/ca',
    }
    const piped = ['-c', 'exec 3>&1; { "$@" 2>&1; echo "ended $?" >&3; } | true', 'sh', ...program]
    const { stdout } = await promisify(execFile)('sh', piped, { env: processEnvironment(settings) })
    expect(stdout).toMatch(/^ended \d+\n$/)
  },
)
