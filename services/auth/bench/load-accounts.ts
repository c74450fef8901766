import { loadRows } from '@services/common/bench/load-rows'

const YEAR_MS = 365 * 86_400_000

const FIRST_NAMES = ['Ada', 'Bob', 'Chen', 'Dana', 'Elif', 'Farid', 'Greta', 'Hugo', 'Ines', 'Jonas'].concat([
  'Kwame',
  'Lena',
  'Maria',
  'Noor',
  'Olga',
  'Pedro',
  'Quinn',
  'Rosa',
  'Samir',
  'Thea',
])
const LAST_NAMES = [
  'Abe',
  'Brown',
  'Costa',
  'Diaz',
  'Evans',
  'Fischer',
  'Garcia',
  'Hansen',
  'Ivanova',
  'Jansen',
].concat(['Khan', 'Lopez', 'Müller', 'Nguyen', 'Okafor', 'Patel', 'Quist', 'Rossi', 'Silva', 'Tanaka', 'Ueda', 'Vogel'])

/** Entries of the audit log for each user. */
const ENTRIES_EACH = 10

export interface Loaded {
  rows: number
  newest: Date
}

/** Users are numbered from the newest. */
export const emailOf = (index: number): string => `user-${index}@example.com`

/** Part of the addresses of a hundred users in a million, among them the busy group. */
export const GROUP = '9999@example.com'

/**
 * Loads `rows` users of one year, as the service would have stored them. Each has an identity, two sessions, a message
 * and ten audit entries. Ten users are in a fifth of the audit log, a group of twenty in a fiftieth. Names repeat,
 * addresses do not.
 */
export async function loadAccounts(url: string, rows: number, newest: Date): Promise<Loaded> {
  const stepMs = Math.floor(YEAR_MS / rows)
  const at = (index: string, step = stepMs) =>
    `(timestamptz '${newest.toISOString()}' - ${index} * interval '${step} ms')`
  const userId = (index: string) => `md5('user ' || ${index})::uuid`
  const email = (index: string) => `'user-' || ${index} || '@example.com'`
  const pick = (names: string[], index: string) => `('{${names}}'::text[])[1 + ${index} % ${names.length}]`
  const name = (index: string) => `${pick(FIRST_NAMES, `(${index})`)} || ' ' || ${pick(LAST_NAMES, `(${index} / 20)`)}`
  const all = (count: number) => `generate_series(0, ${count - 1}) i`
  const browser = `'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'`
  const ip = `'198.51.100.' || i % 256`
  await loadRows(
    url,
    ['users', 'identities', 'sessions', 'audit_log_entries', 'messages'],
    [
      `insert into users (id, aud, role, email, password_hash, email_confirmed_at, last_sign_in_at, app_metadata, user_metadata,
         created_at, updated_at)
       select ${userId('i')}, case when i % 1000 = 7 then 'partners' else 'authenticated' end, 'authenticated', ${email('i')},
         '$argon2id$v=19$m=19456,t=2,p=1$' || repeat('x', 66), ${at('i')}, ${at('i')},
         '{"provider": "email", "providers": ["email"]}', jsonb_build_object('full_name', ${name('i')}), ${at('i')}, ${at('i')}
       from ${all(rows)}`,
      `insert into identities (id, user_id, provider, provider_id, identity_data, last_sign_in_at, created_at, updated_at)
       select md5('identity ' || i)::uuid, ${userId('i')}, 'email', ${userId('i')}::text,
         jsonb_build_object('sub', ${userId('i')}, 'email', ${email('i')}, 'email_verified', true), ${at('i')}, ${at('i')}, ${at('i')}
       from ${all(rows)}`,
      `insert into sessions (id, user_id, amr, refreshed_at, user_agent, ip, created_at)
       select md5('session ' || i)::uuid, ${userId('(i / 2)')}, '[{"method": "password", "timestamp": 1}]', ${at('(i / 2)')},
         ${browser}, (${ip})::inet, ${at('(i / 2)')}
       from ${all(2 * rows)}`,
      `insert into messages (id, user_id, channel, kind, state, attempts, last_error, provider, created_at, sent_at, updated_at)
       select md5('message ' || i)::uuid, ${userId('i')}, channel, 'recovery', state, 1,
         case when state = 'failed' then '550 no such user' end, 'smtp', ${at('i')}, case when state = 'sent' then ${at('i')} end, ${at('i')}
       from (select i, case when i % 10 = 3 then 'sms' else 'mail' end as channel,
           case when i % 10000 = 1 then 'queued' when i % 500 = 2 then 'failed' when i % 1000 = 3 then 'dropped' else 'sent' end as state
         from ${all(rows)}) made`,
      `insert into audit_log_entries (id, payload, ip_address, created_at)
       select md5('entry ' || i)::uuid,
         jsonb_build_object('actor_id', ${userId('actor')}, 'actor_via_sso', false, 'actor_username', ${email('actor')},
           'actor_name', ${name('actor')}, 'action', action, 'log_type', case action when 'token_refreshed' then 'token'
             when 'user_modified' then 'user' when 'recovery_codes_renewed' then 'factor' else 'account' end, 'user_agent', ${browser}),
         ${ip}, ${at('i', Math.floor(stepMs / ENTRIES_EACH))}
       from (select i, case when i % 5 = 0 then (i / 5) % 10 when i % 50 = 1 then (i / 50 % 20 * 10000 + 9999) % ${rows}
             else (i::bigint * 7919) % ${rows} end as actor,
           case when i % 100003 = 4 then 'recovery_codes_renewed' when i % 100 < 20 then 'login' when i % 100 < 80 then 'token_refreshed'
             when i % 100 < 92 then 'logout' when i % 100 < 97 then 'login_failed' else 'user_modified' end as action
         from ${all(ENTRIES_EACH * rows)}) made`,
    ],
  )
  return { rows, newest }
}
