// The one endpoint that takes something: a report of any clip has one answer, and is kept only of a clip that the
// visitor sees.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { comparable } from './request-endpoints.ts'
import { openStage, type Stage, UNKNOWN_ID } from './stage.ts'
import { queryOf, type SourcedState } from './states.ts'

export function reportEndpointTests(states: readonly SourcedState[]): void {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage()
  })
  afterAll(() => stage.close())

  let reporters = 0

  /** Sends a report of an address of its own, because one may report five times a day. */
  const report = (path: string, accept: string) =>
    stage.service.call('POST', path, {
      body: new URLSearchParams({ reason: 'other' }),
      headers: { accept, 'x-client': `2001:db8:${(reporters++).toString(16)}::1` },
    })

  async function reportsOf(id: string): Promise<number> {
    const { body } = await stage.service.get('/reports?limit=100', { token: stage.admin })
    return body.success.items.filter(({ clip }: { clip: { id: string } }) => clip.id === id).length
  }

  describe.for(states)('a report of a clip that is $source and $name', ({ source, steps, visitor, answer }) => {
    test('is answered like that of an unknown one, and no clip changes by it', async () => {
      const it = await stage.make(source, steps)
      const query = queryOf(visitor, it, 'page')
      for (const accept of ['text/html', '*/*']) {
        const known = await report(`/gif/${it.id}/report${query}`, accept)
        const unknown = await report(`/gif/${UNKNOWN_ID}/report${query}`, accept)
        expect(known.status).toBe(202)
        expect(comparable(known)).toEqual(comparable(unknown))
      }
      expect(await reportsOf(it.id)).toBe(answer === 'shown' ? 2 : 0)
    })
  })
}
