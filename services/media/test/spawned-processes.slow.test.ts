// Tests that need processes of their own: a typed command line, replicas that start together, a killed process.
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cloneTemplate } from '@services/common/testing/database/template-database'
import { expect, inject, onTestFinished, test } from 'vitest'
import { media, mediaHere } from './command-line.ts'
import { gif } from './gif-bytes.ts'
import { formOf, send, settingsOf, startTestService } from './service.ts'
import { startServe } from './service-process.ts'
import { arrived, openPiece, tusOf } from './tus.ts'

const NO_WORKERS = { MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' }

test('a command in a process of its own says the same and ends with the same code', async () => {
  const settings = settingsOf('postgres://127.0.0.1:9/media', tmpdir())
  for (const [args, code] of [
    [['--help'], 0],
    [['config', 'check'], 0],
    [['tokens', 'create', '--scopes', 'everything'], 64],
    [['tokens', 'list'], 1],
  ] as const) {
    const outcome = await media([...args], settings)
    expect(outcome).toEqual(await mediaHere([...args], settings))
    expect(outcome.code).toBe(code)
  }
  const refused = await media(['config', 'check'], { ...settings, MEDIA_STORAGE: 's3' })
  expect(refused).toMatchObject({
    code: 78,
    stdout: '',
    stderr: expect.stringContaining('MEDIA_S3_BUCKET is required'),
  })
})

test('two replicas that start at once on an empty database both serve', async () => {
  const [database, directory] = await Promise.all([
    cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_empty`, async () => {}),
    mkdtemp(join(tmpdir(), 'media-test-')),
  ])
  const { url } = database
  const token = 'a-first-token-of-20-characters'
  const settings = { ...settingsOf(url, directory), MEDIA_MIGRATE_ON_START: 'true', MEDIA_BOOTSTRAP_TOKEN: token }
  const starting = [startServe(settings), startServe(settings)]
  onTestFinished(async () => {
    // One may serve where the other could not start.
    for (const start of await Promise.allSettled(starting)) {
      if (start.status === 'fulfilled') start.value.child.kill('SIGKILL')
    }
  })
  const replicas = await Promise.all(starting)
  const statuses = await Promise.all(
    replicas.map(async (replica, n) => {
      const body = await formOf(gif(45 + n, 20, [{ delay: 10 }]))
      return (await send('POST', `${replica.url}/media/upload`, { body, headers: { token } })).status
    }),
  )
  expect(statuses).toEqual([201, 201])
  for (const { child } of replicas) child.kill('SIGTERM')
  expect(await Promise.all(replicas.map(({ ended }) => ended))).toEqual([0, 0])
  await database.drop()
  await rm(directory, { recursive: true })
})

test('a job and an upload of a killed process are free for the next one', async () => {
  const service = await startTestService(NO_WORKERS)
  const bytes = gif(20, 10, [{ delay: 10 }, { delay: 10, color: 1 }])
  const settings = {
    MEDIA_BASE_URL: 'https://media.example',
    MEDIA_DATABASE_URL: service.deps.config.database.url,
    MEDIA_BLOBS_DIR: service.blobsDir,
    MEDIA_LOG_LEVEL: 'fatal',
    ...NO_WORKERS,
  }
  const first = await startServe(settings)
  onTestFinished(() => void first.child.kill('SIGKILL'))
  const path = await tusOf(service).begin(bytes.length)
  const piece = openPiece({ ...service, url: first.url }, path, { 'content-length': bytes.length })
  piece.write(bytes.subarray(0, 60))
  await arrived(service, path, 60)
  first.child.kill('SIGKILL')
  await first.ended
  const tus = tusOf(service)
  expect(await tus.offset(path)).toBe(60)
  const answer = await tus.send(path, 60, bytes.subarray(60))
  expect(answer.status).toBe(204)
  const { rows } = await service.deps.pool.query(`select encode(sha256, 'hex') as sha256 from sources`)
  expect(rows).toEqual([{ sha256: createHash('sha256').update(bytes).digest('hex') }])
  await service.close()
})
