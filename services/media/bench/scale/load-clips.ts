import { loadRows } from '@services/common/bench/load-rows'
import { hashToken, makeToken, prefixOf } from '../../src/core/tokens/token-format.ts'
import { dayOf } from '../../src/core/tokens/usage.store.ts'
import type { MediaInfo } from '../../src/db/media-info.ts'

const YEAR_MS = 365 * 86_400_000

/** The token that owns a third of all clips. */
export const OWNER_TOKEN = makeToken(() => 7)
export const OWNER_ID = idOfToken(0)

/** Names of the tokens' ids, which this process and the database derive alike. */
export function idOfToken(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
}

export interface Loaded {
  rows: number
  tokens: number
  newest: Date
}

/**
 * Clips are numbered from the newest; their ids do not follow that order. Odd, so that no two numbers have the same id.
 */
const ID_FACTOR = 2_654_435_761n

export const idOfClip = (index: number): string =>
  ((BigInt(index) * ID_FACTOR) % 2n ** 32n).toString(16).padStart(8, '0')

export const createdAt = ({ rows, newest }: Loaded, index: number): Date =>
  new Date(newest.getTime() - index * Math.floor(YEAR_MS / rows))

/** Information that the probe returns of a usual clip. */
export const INFO: MediaInfo = {
  ...{ type: 'mp4', width: 854, height: 480, durationSeconds: 5.005, frames: 150, fps: 29.97, hasAudio: true },
  ...{ codec: 'h264', videoStream: 0, audioStream: 1, isStill: false, startSeconds: 0, baseFps: 29.97, keyframes: 2 },
  ...{ longestFrameSeconds: 0.034, shortestFrameSeconds: 0.033, hdr: null, alpha: false, colorSpace: 'bt709' },
  isInterlaced: false,
}

/** Rows that triggers would have written. */
const LISTS = [
  `insert into clip_tags (clip_id, tag_key, token_id, created_at, nsfw)
   select id, tag_key, token_id, created_at, nsfw from clips, unnest(tag_keys) tag_key`,
  `insert into clip_search (clip_id, token_id, created_at, bytes, duration_ms, nsfw, title_key, words)
   select clips.id, clips.token_id, clips.created_at, bytes, round((info ->> 'durationSeconds')::numeric * 1000), nsfw,
     left(search_key(coalesce(title, '')), 60),
     array_to_tsvector(search_words(concat_ws(' ', title, array_to_string(tags, ' '), attribution ->> 'user')))
   from clips join sources on sources.id = source_id`,
  `insert into clip_words (created_at, token_id, clip_id, word)
   select created_at, token_id, clip_id, unnest(tsvector_to_array(words)) from clip_search`,
]

/**
 * Loads `rows` clips of one year, each with a source, four renditions and four blobs, as the service would have stored
 * them. A token for each thousand clips, of which one has a third of all; each tenth clip has none. Tags are common,
 * rare, only on old clips, or never on clips of the large token. The large token's webhooks have as many deliveries.
 */
export async function loadClips(url: string, rows: number, newest: Date): Promise<Loaded> {
  const tokens = Math.max(10, Math.floor(rows / 1_000))
  const loaded = { rows, tokens, newest }
  const at = (index: string) =>
    `(timestamptz '${newest.toISOString()}' - ${index} * interval '${Math.floor(YEAR_MS / rows)} ms')`
  const tokenId = (index: string) => `('00000000-0000-4000-8000-' || lpad((${index})::text, 12, '0'))::uuid`
  const sourceId = `md5('source ' || i)::uuid`
  const digest = (name: string) => `sha256(convert_to(${name} || i, 'UTF8'))`
  const owner = `case when i % 10 = 9 then null when i % 3 = 0 then 0 else 1 + (i / 10) % ${tokens - 1} end`
  // Most clips without a token have expired; of a tenth of these the deletion is still due.
  const isExpired = `(i % 10 = 9 and ${at('i')} < timestamptz '${newest.toISOString()}' - interval '30 days')`
  const isDeleted = `(i % 20 = 13 or (${isExpired} and i % 100 <> 99))`
  const state = `case when i % 1500 = 4 then 'failed' when i % 10000 = 7 then 'processing' else 'ready' end`
  const tags = `array_remove(array[
    case when i % 2 = 0 then 'Funny' end, case when i % 50 = 1 then 'Cats' end, case when i % 1499 = 5 then 'Rare' end,
    case when i > ${0.9 * rows} and i % 2 = 1 then 'Old' end, case when i % 3 = 1 then 'Elsewhere' end], null)`
  const all = `generate_series(0, ${rows - 1}) i`
  const live = `${all} where not ${isDeleted}`
  const kinds = `(values ('gif', 480, 1900000), ('jpg', 854, 60000), ('mp4', 854, 620000), ('webm', 854, 540000)) made (kind, width, bytes)`
  const ready = `${all}, ${kinds} where not ${isDeleted} and ${state} = 'ready'`
  await loadRows(
    url,
    [
      ...['api_tokens', 'sources', 'clips', 'renditions', 'blobs', 'token_days', 'token_storage'],
      ...['webhooks', 'webhook_deliveries'],
      ...['clip_tags', 'clip_search', 'clip_words'],
    ],
    [
      `insert into api_tokens (id, name, prefix, hash, scopes, created_at)
       select ${tokenId('i')}, 'Application ' || i, 'mh_' || i, ${digest("'token '")}, '{write,read,delete}',
         timestamptz '${newest.toISOString()}' - interval '400 days' + i * interval '1 minute'
       from generate_series(1, ${tokens - 1}) i`,
      `insert into api_tokens (id, name, prefix, hash, scopes, created_at)
       values (${tokenId('0')}, 'The largest', '${prefixOf(OWNER_TOKEN)}',
         '\\x${hashToken(OWNER_TOKEN).toString('hex')}', '{write,read,delete}', '${newest.toISOString()}')`,
      `insert into sources (id, sha256, pipeline_version, state, error_code, bytes, rendition_bytes, info, has_audio, clip_count,
         created_at, finished_at, placeholder, token_id)
       select ${sourceId}, ${digest("'source '")}, 1, state, case when state = 'failed' then 'corrupt_media' end,
         100000 + (i::bigint * 7919) % 4999999,
         case when state = 'ready' then 3120000 else 0 end,
         jsonb_set('${JSON.stringify(INFO)}', '{durationSeconds}', to_jsonb((1 + i % 290) / 10.0)), true, 1, ${at('i')},
         case when state <> 'processing' then ${at('i')} + interval '4 s' end,
         case when state = 'ready' then substr(${digest("'placeholder '")}, 1, 25) end, ${tokenId(owner)}
       from (select i, ${state} as state from ${live}) made`,
      `insert into clips (id, token_id, source_id, title, tags, tag_keys, nsfw, source_kind, source_url, created_at, deleted_at,
         expires_at, visibility)
       select lpad(to_hex((i::bigint * ${ID_FACTOR}) % 4294967296), 8, '0'), ${tokenId(owner)},
         case when not is_deleted then ${sourceId} end, case when not is_deleted then 'Clip number ' || i end,
         case when is_deleted then '{}' else tags end, case when is_deleted then '{}' else lower(tags::text)::text[] end,
         i % 997 = 3, case when i % 4 = 0 then 'import' else 'upload' end,
         case when i % 4 = 0 and not is_deleted then 'https://example.com/videos/' || i end, ${at('i')},
         case when is_deleted then ${at('i')} + interval '1 day' end,
         case when i % 10 = 9 then ${at('i')} + interval '30 days' end,
         case when i % 3000 = 0 then 'private' when i % 7 = 1 then 'unlisted' else 'public' end
       from (select i, ${isDeleted} as is_deleted, ${tags} as tags from ${all}) made`,
      ...LISTS,
      `insert into renditions (source_id, kind, sha256, bytes, width, height)
       select ${sourceId}, kind, ${digest('kind')}, bytes, width, 480 from ${ready}`,
      `insert into blobs (sha256, extension, bytes, reference_count) select ${digest('kind')}, kind, bytes, 1 from ${ready}`,
      `insert into token_days (token_id, day, requests, clips, bytes)
       select ${tokenId('token')}, date '${dayOf(newest)}' - day, 1000, 3, 3600000
       from generate_series(0, ${tokens - 1}) token, generate_series(0, 395) day`,
      `insert into token_storage (token_id, clips, bytes)
       select clips.token_id, count(*), sum(bytes + rendition_bytes) from clips join sources on sources.id = source_id
       where clips.token_id is not null group by 1`,
      `insert into webhooks (id, token_id, url, events, secret, created_at)
       select ${tokenId('i')}, ${tokenId('0')}, 'https://example.com/hook/' || i, '{media.ready}', 'secret',
         '${newest.toISOString()}'
       from generate_series(1, 10) i`,
      `insert into webhook_deliveries (id, webhook_id, type, payload, state, attempts, next_attempt_at, give_up_at,
         last_attempt_at, last_status, created_at)
       select md5('delivery ' || i)::uuid, ${tokenId('1 + i % 10')}, 'media.ready',
         jsonb_build_object('type', 'media.ready', 'data', jsonb_build_object('id', i, 'page', 'https://media.example/gif/' || i)),
         case when i < 100 then 'pending' else 'delivered' end, 1,
         case when i < 100 then timestamptz '${newest.toISOString()}' + interval '1 day' end, ${at('i')} + interval '1 day', ${at('i')},
         case when i >= 100 then 200 end, ${at('i')}
       from ${all}`,
    ],
  )
  return loaded
}
