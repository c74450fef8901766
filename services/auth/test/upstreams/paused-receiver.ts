// Events of a test service: a receiver that is disabled, so that they wait, and what waits for it.
import { expect } from 'vitest'
import type { TestService } from '../service.ts'

export interface StoredEvent {
  id: string
  event: string
  user_id: string | null
  // biome-ignore lint/suspicious/noExplicitAny: data is what the test says it is
  data: any
}

/** Adds a receiver of all events; they wait, because it is disabled. Returns its id. */
export async function addPausedReceiver(service: TestService, events = ['*']): Promise<string> {
  const input = { url: 'https://8.8.8.8/events', events, enabled: false }
  const { status, body } = await service.post('/admin/webhooks', input, service.admin)
  expect(status).toBe(201)
  return body.id
}

/** Events in their order, those after `after` alone. */
export async function storedEvents({ deps }: TestService, after = 0): Promise<(StoredEvent & { position: number })[]> {
  const { rows } = await deps.pool.query(
    `select position, event.id, event, event.user_id,
       case when shown.id is null then event.data
         else event.data || jsonb_build_object('user', shown.data) end as data
     from webhook_deliveries event left join event_users shown on shown.id = event_user_id
     where position > $1 order by position`,
    [after],
  )
  return rows
}

/** Events that `work` causes. */
export async function eventsDuring(service: TestService, work: () => Promise<unknown>): Promise<StoredEvent[]> {
  const before = (await storedEvents(service)).at(-1)?.position
  await work()
  await service.settled()
  return storedEvents(service, before)
}
