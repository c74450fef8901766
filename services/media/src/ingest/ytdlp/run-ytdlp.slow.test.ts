import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { tools } from '../../../test/clips.ts'
import { installFakeYtdlp, pageThat } from '../../../test/upstreams/fake-ytdlp.ts'
import { createSourceGuard } from '../remote/source-guard.ts'
import { runYtdlp, type YtdlpOptions } from './run-ytdlp.ts'

let program: Awaited<ReturnType<typeof installFakeYtdlp>>
let directory: string
beforeAll(async () => {
  program = await installFakeYtdlp()
})
afterAll(() => program.remove())
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'run-ytdlp-'))
})
afterEach(() => rm(directory, { recursive: true }))

const isSealed = tools.limiters.sandbox?.kind === 'bwrap'
const unsealed = { ...tools.limiters, sandbox: null }
/** Its own limit is what ends it. */
const inTime = { wallFactor: 1 }
const never = new AbortController().signal

const run = (url: string, options: Partial<YtdlpOptions> = {}, { wallSeconds = 30, signal = never } = {}) =>
  runYtdlp(
    {
      path: program.path,
      guard: createSourceGuard({ allowCidrs: ['127.0.0.1/32'] }),
      limiters: tools.limiters,
      ...{ maxSeconds: 30, maxBytes: 1000, ...options },
    },
    url,
    { directory, signal, wallSeconds },
  )

/** The parsed output. */
const said = async (...input: Parameters<typeof run>) => {
  const { outcome } = await run(...input)
  return outcome.state === 'done' ? JSON.parse(outcome.stdout) : outcome
}

test('it gets its arguments, a proxy, and nothing of ours', async () => {
  const url = pageThat('tells')
  const { args, environment } = await said(url)
  expect(args.slice(0, 3)).toEqual(['--ignore-config', '--no-cache-dir', '--no-plugin-dirs'])
  expect(args).toContain('!is_live & duration<=?30.5')
  expect(args.slice(-4)).toEqual(['-J', '--skip-download', '--', url])
  expect(args[args.indexOf('--proxy') + 1]).toMatch(/^http:\/\/ytdlp:\w{32}@127\.0\.0\.1:\d+$/)
  expect(Object.keys(environment).filter((name) => !/^(PATH|LANG|TMPDIR|PWD|_|SHLVL|OLDPWD)$/.test(name))).toEqual([])
})

test('cookies of the operator come as a copy, which it may write', async () => {
  const cookies = join(program.directory, 'cookies.txt')
  await writeFile(cookies, 'the cookies')
  expect(await said(pageThat('tells'), { cookies })).toMatchObject({ cookies: 'the cookies' })
  expect(await readFile(cookies, 'utf8')).toBe('the cookies')
})

describe.each([
  ['sealed off', tools.limiters, isSealed],
  ['without a sandbox', unsealed, false],
])('%s', (_, limiters, isAway) => {
  test('it reaches through the proxy what the guard permits', async () => {
    const server = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const target = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const [plain, tunnel] = await said(pageThat('reaches', { target }), { limiters })
    expect([plain, tunnel]).toEqual(['plain 200', 'tunnel 200'])
  })

  test('and nothing else', async () => {
    let touched = 0
    const canary = createTcpServer((socket) => socket.destroy()).listen(0, '127.0.0.2')
    canary.on('connection', () => touched++)
    onTestFinished(() => void canary.close())
    await once(canary, 'listening')
    const target = `127.0.0.2:${(canary.address() as AddressInfo).port}`
    const { outcome, hasRefused } = await run(pageThat('reaches', { target }), { limiters })
    const [plain, tunnel, direct] = outcome.state === 'done' ? JSON.parse(outcome.stdout) : []
    expect([plain, tunnel]).toEqual(['plain 403', 'tunnel 403'])
    expect(hasRefused).toBe(true)
    // Only the kernel can see to this one.
    expect(direct).toBe(isAway ? 'direct failed' : 'direct reached')
    expect(touched).toBe(isAway ? 0 : 1)
  })

  test('one that hangs is ended in time, with its children', async () => {
    const seconds = String(100_000 + Math.floor(Math.random() * 100_000))
    const { outcome } = await run(
      pageThat('hangs', { seconds }),
      { limiters: { ...limiters, ...inTime } },
      { wallSeconds: 1.5 },
    )
    expect(outcome.state).toBe('timed-out')
    const listed = async () => (await promisify(execFile)('ps', ['-eo', 'args'])).stdout
    await expect.poll(listed).not.toContain(`sleep ${seconds}`)
  })

  test('its end by a signal is reported', async () => {
    const { outcome } = await run(pageThat('dies'), { limiters })
    expect(outcome).toMatchObject({ state: 'failed', signal: 'SIGSEGV' })
  })
})

test('one that prints without end is ended', async () => {
  expect((await run(pageThat('floods'))).outcome.state).toBe('too-much-output')
})

test('it ends when its caller aborts', async () => {
  const gone = new AbortController()
  const running = run(pageThat('hangs', { seconds: '1000' }), {}, { signal: gone.signal })
  gone.abort(new Error('gone'))
  await expect(running).rejects.toThrow('gone')
})
