import pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import { gif } from './gif-bytes.ts'
import { startTestService, test } from './service.ts'

const END = 'end'

test.for([
  ['batched', true],
  ['each', true],
  ['none', false],
] as const)('an upload gets its result when notifications are %s', async ([mode, isNotified]) => {
  const service = await startTestService({ MEDIA_DB_NOTIFY: mode })
  onTestFinished(service.close)
  const heard: string[] = []
  const client = new pg.Client({ connectionString: service.deps.config.database.directUrl })
  await client.connect()
  try {
    client.on('notification', ({ payload = '' }) => heard.push(payload))
    await client.query('listen media_results')
    const answer = await service.upload(gif(20, 10, [{ delay: 10 }, { delay: 10, color: 1 }]))
    expect([answer.status, answer.headers.get('x-media-state')]).toEqual([201, 'ready'])
    const { rows } = await client.query('select id from sources')
    await service.deps.announcements.flush()
    await client.query(`select pg_notify('media_results', '${END}')`)
    await expect.poll(() => heard).toContain(END)
    expect(heard).toEqual([...(isNotified ? [rows[0].id] : []), END])
  } finally {
    await client.end()
  }
})
