// Logs: no line of any level holds what opens a private clip, nor its texts, whether an endpoint opens, refuses or
// fails.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { endpoints } from './endpoints.ts'
import { pick, requestAll, statusOf } from './request-endpoints.ts'
import { openStage, SECRET_TITLE } from './stage.ts'

test('a log of all endpoints names neither links nor keys, tokens and titles', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'media-endpoints-'))
  const file = join(folder, 'log')
  const stage = await openStage({ MEDIA_LOG_LEVEL: 'debug', MEDIA_LOG_FILE: file })
  onTestFinished(async () => {
    await stage.close()
    await rm(folder, { recursive: true })
  })
  const { service } = stage
  await stage.makeVariants()
  const it = await stage.make('ready', ['private'])
  for (const visitor of ['link', 'forged link', 'no link'] as const) {
    await requestAll(service, stage, endpoints, { it, visitor })
  }
  await service.call('POST', `/gif/${it.id}/report${it.links.page}`, { body: new URLSearchParams({ reason: 'other' }) })
  // The files are lost, once no worker writes others: HEAD, which looks for them each time, fails with a cause in the
  // log.
  await service.traces()
  await rm(service.blobsDir, { recursive: true })
  const lost = await requestAll(service, stage, endpoints, { it, visitor: 'link', method: 'HEAD' })
  expect(pick(lost, statusOf)).toMatchObject({ gif: 500, page: 200 })

  const readLog = async () => {
    // A flush during a write leaves the newest lines to the next.
    await new Promise<void>((done) => service.deps.log.flush(() => done()))
    return readFile(file, 'utf8')
  }
  await expect.poll(readLog).toContain('is not in the store')
  const log = await readLog()
  expect(log).toContain('"route":"/f/:id.:kind","status":404')
  const { rows } = await service.deps.pool.query(
    `select encode(link_salt, 'hex') as hex, encode(link_salt, 'base64') as base64 from clips where id = $1`,
    [it.id],
  )
  const signatures = Object.values(it.links).map((query) => new URLSearchParams(query).get('s'))
  const secrets = [...signatures, rows[0].hex, rows[0].base64, SECRET_TITLE, service.token, stage.admin]
  expect(secrets.filter((secret) => secret === null || log.includes(secret))).toEqual([])
})
