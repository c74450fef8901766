import { exec, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { findFreePort } from '@services/common/dev/dev-ports'
import { PATIENCE_MS } from '@services/common/testing/patience'
import { expect, onTestFinished, test, vi } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { gif } from './gif-bytes.ts'
import { formOf, idIn, send } from './service.ts'
import { eventually } from './service-process.ts'

/**
 * Starts `dev` as a terminal does: in a process group of its own, without settings of the developer's shell or this
 * run.
 */
async function startDev(dataDir: string) {
  const port = await findFreePort()
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, ['src/dev.ts'], {
    cwd: join(import.meta.dirname, '..'),
    env: { PATH, HOME, NODE_COMPILE_CACHE, DEV_DATA_DIR: dataDir, MEDIA_PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const ended = once(child, 'exit').then(([code, signal]) => code ?? signal)
  await vi.waitFor(() => expect(output).toContain('Ctrl-C stops it'), PATIENCE_MS)
  return {
    url: `http://127.0.0.1:${port}`,
    output,
    token: /token {4}(mh_\w{28})/.exec(output)?.[1] as string,
    /** The terminal sends it to all processes of the group. */
    pressControlC: () => process.kill(-(child.pid as number), 'SIGINT'),
    ended,
  }
}

/** Command lines of the processes that use the directory. */
async function processesOf(dataDir: string): Promise<string[]> {
  const numbers = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = numbers.map(async (number) => {
    const commandLine = await readFile(`/proc/${number}/cmdline`, 'latin1').catch(() => '')
    const directory = await readlink(`/proc/${number}/cwd`).catch(() => '')
    return (commandLine + directory).includes(dataDir) ? [commandLine] : []
  })
  return (await Promise.all(found)).flat()
}

test('dev starts with nothing given, says where it is, ends on Ctrl-C with nothing left, and knows its token again', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'media-dev-test-'))
  // PostgreSQL runs as another user where this one is root.
  await chmod(dataDir, 0o755)
  const first = await startDev(dataDir)
  expect(first.output).toContain(`base URL ${first.url}\n`)
  expect(first.output).toContain(`docs     ${first.url}/docs\n`)
  expect((await send('GET', `${first.url}/docs`)).status).toBe(200)
  const headers = { token: first.token }
  const upload = await send('POST', `${first.url}/media/upload`, {
    body: await formOf(gif(46, 20, [{ delay: 10 }])),
    headers,
  })
  expect(upload.status).toBe(201)
  expect(first.output).toMatch(new RegExp(`commands DEV_DATA_DIR='${dataDir}' npx .+ cli:dev --help\n`))
  const environment = { PATH: dirname(process.execPath), DEV_DATA_DIR: dataDir }
  const list = await promisify(exec)(`${manifest.scripts['cli:dev']} tokens list --json`, {
    cwd: join(import.meta.dirname, '..'),
    env: environment,
  })
  expect(JSON.parse(list.stdout)).toMatchObject([{ name: 'dev' }])
  expect(await processesOf(dataDir)).not.toEqual([])
  first.pressControlC()
  expect(await first.ended).toBe(0)
  await eventually(() => processesOf(dataDir), [])

  const second = await startDev(dataDir)
  expect(second.token).toBe(first.token)
  expect((await send('GET', `${second.url}/f/${idIn(upload)}.jpg`)).status).toBe(200)
  second.pressControlC()
  expect(await second.ended).toBe(0)
  await rm(dataDir, { recursive: true })
})
