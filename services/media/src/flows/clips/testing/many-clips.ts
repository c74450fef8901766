// Many clips at once for tests, as rows: the endpoints that are about many need hundreds.
import { gif } from '../../../../test/gif-bytes.ts'
import { idIn, type TestService } from '../../../../test/service.ts'

const FEW_SOURCES = 3
let made = 0

/** Adds ready clips of a token, which share three sources by turns; the newest is the last. */
export async function addClips(
  service: TestService,
  count: number,
  { token = service.token, tags = [] }: { token?: string; tags?: string[] } = {},
): Promise<string[]> {
  const first: string[] = []
  for (let n = 0; n < FEW_SOURCES; n++) {
    first.push(idIn(await service.readyAlike(gif(30 + n, 12, [{ delay: 10 }]), [], { token })))
  }
  const start = made
  made += count
  const { rows } = await service.deps.pool.query(
    `with first as (select *, row_number() over (order by id) - 1 as n from clips where id = any($1)),
       added as (
         insert into clips (id, token_id, source_id, title, tags, tag_keys, source_kind, created_at)
         select 'M' || lpad(($2 + at)::text, 7, '0'), token_id, source_id, 'Clip ' || at, $4, $4, 'upload',
           $5::timestamptz + at * interval '1 ms'
         from generate_series(0, $3 - 1) at join first on first.n = at % ${FEW_SOURCES}
         returning id, source_id
       ), counted as (
         update sources set clip_count = clip_count + clips, unreferenced_at = null
         from (select source_id, count(*)::integer as clips from added group by source_id) added
         where sources.id = source_id
       )
     select id from added order by id`,
    [first, start, count, tags, service.deps.now()],
  )
  for (const id of first) await service.call('DELETE', `/media/${id}`, { headers: { token } })
  return rows.map(({ id }) => id)
}
