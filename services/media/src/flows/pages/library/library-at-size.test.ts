// Cost of the first view of a large library: bytes over the wire, and rows that are read.
import { expect } from 'vitest'
import { gif } from '../../../../test/gif-bytes.ts'
import { idIn, test } from '../../../../test/service.ts'
import { HOSTILE_TITLE, signedIn } from './testing/library-clips.ts'

const CLIPS = 20_000
const MOST_BYTES = 60_000

test('the first view of a full library has at most 60 KB, titles of 200 characters among them', async ({ service }) => {
  const { token, id: tokenId } = await service.newToken()
  const id = idIn(await service.ready(gif(320, 180, [{ delay: 40 }]), [['title', 'First']], { token }))
  const client = await service.deps.pool.connect()
  // The triggers would take half a minute.
  await client.query(`set session_replication_role = 'replica'`)
  await client.query(
    `insert into clips (id, token_id, source_id, title, tags, tag_keys, source_kind, created_at, visibility, expires_at)
     select 'a' || lpad(n::text, 7, '0'), $1, source_id,
       case when n % 8 = 0 then $3 else 'A clip with a title of usual length ' || n end,
       array['tag ' || n % 40], array['tag ' || n % 40], 'upload', created_at - n * interval '1 s',
       case when n % 5 = 0 then 'private' else 'public' end,
       case when n % 3 = 0 then created_at + interval '40 days' end
     from clips, generate_series(1, ${CLIPS}) n where id = $2`,
    [tokenId, id, HOSTILE_TITLE.slice(1)],
  )
  await client.query(`set session_replication_role = 'origin'`)
  client.release()
  await service.deps.pool.query('analyze')
  const headers = await signedIn(service, token)
  const { status, bytes, text } = await service.get('/library', headers)
  expect([status, text.match(/<li class="clip/g)?.length, text.match(/<small>/g)?.length]).toEqual([200, 40, 30])
  expect(bytes.length).toBeLessThan(MOST_BYTES)
})
