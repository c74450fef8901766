import type { TestService } from '../service.ts'
import { type Endpoint, openTo } from './endpoints.ts'
import { type EndpointAnswer, requestAll, type Visit } from './request-endpoints.ts'
import { type Stage, UNKNOWN_ID } from './stage.ts'

export type Refusal = 404 | 410 | 451

/** Clips that all endpoints refuse, one for each status. Refusals of any other clip equal theirs. */
export async function openRefusals(stage: Pick<Stage, 'make' | 'mp4Etag'>, endpoints: readonly Endpoint[]) {
  const [gone, hidden] = [await stage.make('ready', ['deleted']), await stage.make('ready', ['hidden'])]
  const ids: Record<Refusal, string> = { 404: UNKNOWN_ID, 410: gone.id, 451: hidden.id }
  const known = new Map<string, Promise<Record<string, EndpointAnswer>>>()

  /**
   * Answers about such a clip to the same visitor. Those to a link are asked for each time, because the link differs.
   */
  return (service: TestService, status: Refusal, visit: Visit): Promise<Record<string, EndpointAnswer>> => {
    const ask = () => requestAll(service, stage, openTo(visit.visitor, endpoints), { ...visit, id: ids[status] })
    if (visit.visitor !== 'no link') return ask()
    const key = `${service.url} ${status}`
    const answers = known.get(key) ?? ask()
    known.set(key, answers)
    return answers
  }
}
