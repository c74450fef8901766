// Lists that only the console reads, and the numbers of its overview: rows for them, and their requests.

import type { MeasuredList } from '@services/common/bench/lists'
import { loadRows } from '@services/common/bench/load-rows'
import type { Loaded } from './load-accounts.ts'

/** Sessions of one user, as of a program that signs in for each of its runs. */
const MANY_SESSIONS = 10_000

const WEBHOOK = '00000000-0000-7000-8000-000000000001'
/** Ids of the deliveries, in the order of time. */
const DELIVERY = `('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid`

/** Numbers of 40 methods and results, of 26 hours by four processes and of 395 days. */
const COUNTED = `(select event, method, result from
  (values ('sign_up'), ('sign_in')) events (event),
  (values ('password'), ('otp'), ('passkey'), ('google'), ('github')) methods (method),
  (values ('ok'), ('invalid_credentials'), ('otp_expired'), ('user_banned')) results (result)) counted`

const USER = `md5('user 77')::uuid`

/** Loads a delivery for each user, the numbers of the overview, and one user's sessions. */
export async function loadForConsole(url: string, { rows, newest }: Loaded): Promise<void> {
  const now = `timestamptz '${newest.toISOString()}'`
  await loadRows(
    url,
    ['webhooks', 'webhook_deliveries', 'hourly_counts', 'daily_counts', 'sessions'],
    [
      `insert into webhooks (id, url, events, description, sealed_secrets, created_at, updated_at)
       values ('${WEBHOOK}', 'https://receiver.example/events', '{*}', '', 'sealed', ${now}, ${now})`,
      `insert into webhook_deliveries (webhook_id, id, user_id, event, data, state, attempts, last_status, give_up_at, created_at)
       select '${WEBHOOK}', ${DELIVERY}, md5('user ' || i)::uuid, 'user.signed_in', '{"method": "password"}', 'delivered',
         1, 204, ${now}, ${now} from generate_series(1, ${rows}) i`,
      `insert into hourly_counts (hour, event, method, result, process, count)
       select date_trunc('hour', ${now}, 'UTC') - h * interval '1 hour', event, method, result,
         md5('process ' || p)::uuid, 7
       from ${COUNTED}, generate_series(0, 25) h, generate_series(1, 4) p`,
      `insert into daily_counts (day, event, method, result, count)
       select (${now} at time zone 'UTC')::date - d, event, method, result, 700 from ${COUNTED}, generate_series(2, 396) d`,
      `insert into sessions (id, user_id, amr, refreshed_at, user_agent, ip, created_at)
       select md5('program ' || i)::uuid, ${USER}, '[{"method": "password", "timestamp": 1}]', ${now}, 'curl/8.17.0',
         '198.51.100.7', ${now} - i * interval '1 minute' from generate_series(1, ${MANY_SESSIONS}) i`,
    ],
  )
}

/** Bound of the console's screens. */
const BOUND_MS = 200

/** Lists of the console beside those of the admin API. `user` is the id of the one with many sessions. */
export function listsOfConsole(headers: Record<string, string>, user: string, newest: Date): MeasuredList[] {
  const sessions = `select id from sessions where user_id = '${user}' order by created_at desc, id desc`
  const delivered = `select id from webhook_deliveries where webhook_id = '${WEBHOOK}' order by id desc`
  const month = { from: dayBefore(newest, 60), before: dayBefore(newest, 30) }
  const during = `created_at >= '${month.from}' and created_at < '${month.before}'`
  const entries = (id: string, what: string, query: string, condition: string): MeasuredList => ({
    ...{ id: `console-audit-${id}`, what: `GET /admin/audit, ${what}`, headers, boundMs: BOUND_MS },
    paths: [`/admin/audit?limit=50&from=${month.from}&before=${month.before}${query}`],
    rows: `select id from audit_log_entries where ${during} and ${condition} order by created_at desc, id`,
    idsOf: (body) => idsIn(JSON.parse(body)),
  })
  return [
    {
      ...{ id: 'console-sessions', what: 'GET /admin/users/{id}/sessions, of 10,000', headers, boundMs: BOUND_MS },
      ...{ paths: [`/admin/users/${user}/sessions?limit=50`], rows: sessions },
      idsOf: (body) => idsIn(JSON.parse(body)),
    },
    {
      ...{ id: 'console-deliveries', what: 'GET /admin/webhooks/{id}/deliveries', headers, boundMs: BOUND_MS },
      ...{ paths: [`/admin/webhooks/${WEBHOOK}/deliveries`], rows: delivered },
      idsOf: (body) => idsIn(JSON.parse(body).deliveries),
    },
    entries('month', 'of a month', '', 'true'),
    entries('month-action', 'an action in a month', '&query=action:login', `payload ->> 'action' ilike '%login%'`),
    {
      ...{ id: 'console-messages', what: 'GET /admin/messages?kind=recovery by cursor', headers, boundMs: BOUND_MS },
      paths: ['/admin/messages?limit=50&kind=recovery'],
      rows: `select id from messages where kind = 'recovery' order by created_at desc, id`,
      idsOf: (body) => idsIn(JSON.parse(body).messages),
    },
    {
      ...{ id: 'console-overview', what: 'GET /admin/statistics?days=30', headers, boundMs: BOUND_MS },
      paths: ['/admin/statistics?days=30'],
      rows: `select d::date as id from generate_series(
        '${dayBefore(newest, 29)}'::date, '${dayBefore(newest, 0)}'::date, '1 day') d order by d`,
      idsOf: (body) => JSON.parse(body).days.map(({ from }: { from: string }) => from.slice(0, 10)),
    },
  ]
}

const dayBefore = (time: Date, days: number) => new Date(time.getTime() - days * 86_400_000).toISOString().slice(0, 10)

const idsIn = (items: { id: string }[]) => items.map(({ id }) => id)
