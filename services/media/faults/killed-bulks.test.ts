// A service killed between two transactions of a request about many clips. The repetition with the same key completes
// it: every clip is changed once, has one webhook, and an answer that is true of it.
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { idIn, send } from '../test/service.ts'
import { eventually, type ServiceProcess } from '../test/service-process.ts'
import { holdChange } from './held-change.ts'
import { newClip, openStage, type Stage, stop, TOKEN, uploadTo } from './stage.ts'

const report = openFaultReport()
const WITHOUT_WORKERS = { MEDIA_WORKERS_ENABLED: 'false' }

let stage: Stage
/** Answers after the other process was killed. */
let api: ServiceProcess
let first: string

beforeAll(async () => {
  stage = await openStage()
  const worker = stage.startWorker()
  api = await stage.serve(WITHOUT_WORKERS)
  first = idIn(await uploadTo(api.url, newClip()))
  await stop(worker)
  const body = JSON.stringify({ url: 'https://hooks.example/', events: ['media.deleted'] })
  const headers = { token: TOKEN, 'content-type': 'application/json' }
  expect((await send('POST', `${api.url}/webhooks`, { headers, body })).status).toBe(201)
})
afterAll(() => stage.end())

/** Adds clips of the bytes of the first one. */
async function addClips(letter: string, count: number): Promise<string[]> {
  const rows = await stage.query(
    `with added as (
       insert into clips (id, token_id, source_id, source_kind, created_at)
       select $2 || lpad(n::text, 7, '0'), token_id, source_id, 'upload', created_at
       from clips, generate_series(1, $3::integer) n where id = $1 returning id, source_id
     ), counted as (
       update sources set clip_count = clip_count + $3::integer where id = (select source_id from added limit 1)
     )
     select id from added order by id`,
    [first, letter, count],
  )
  return rows.map(({ id }) => id)
}

test.for([
  ['rolled back', 'R', 'undo', 50],
  ['committed without an answer', 'C', 'letPass', 100],
] as const)(
  'a service killed in the second of three transactions, which is %s: the repetition deletes the rest, once',
  { timeout: 120_000 },
  async ([what, letter, end, deleted]) => {
    const ids = await addClips(letter, 120)
    const request = (base: string) =>
      send('POST', `${base}/media/bulk`, {
        headers: { token: TOKEN, 'content-type': 'application/json', 'idempotency-key': what },
        body: JSON.stringify({ ids, action: 'delete' }),
      })
    const service = await stage.serve(WITHOUT_WORKERS)
    const held = await holdChange(stage.url, {
      ...{ table: 'clips', on: 'update', at: 'commit', when: `new.id = '${ids[50]}'` },
    })
    const answered = request(service.url).catch(() => 'broken')
    await held.hasBegun()
    service.child.kill('SIGKILL')
    await service.ended
    expect(await answered).toBe('broken')
    await held[end]()
    const count = async (text: string) => (await stage.query(text, [ids]))[0].count
    const countDeleted = () => count('select count(*)::int from clips where id = any($1) and deleted_at is not null')
    await eventually(countDeleted, deleted)
    const repeated = await request(api.url)
    expect([repeated.status, repeated.body.success.results]).toEqual([200, ids.map((id) => ({ id, ok: true }))])
    expect(await countDeleted()).toBe(ids.length)
    expect(await count(`select count(*)::int from webhook_deliveries where payload -> 'data' ->> 'id' = any($1)`)).toBe(
      ids.length,
    )
    const again = await request(api.url)
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([repeated.body, 'true'])
    const [{ clip_count: left }] = await stage.query(
      'select clip_count from sources join clips on source_id = sources.id where clips.id = $1',
      [first],
    )
    expect(left).toBe(1)
    report(`service killed during a deletion of many clips, ${what}`, { 'deleted before the repetition': deleted })
  },
)
